select id, stars, body from {{ ref('raw_reviews') }} where stars < 4
