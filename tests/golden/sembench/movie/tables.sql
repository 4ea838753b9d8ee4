CREATE TABLE reviews (id INTEGER, movie VARCHAR, critic VARCHAR, publication VARCHAR, created VARCHAR, text VARCHAR);
COMMENT ON COLUMN reviews.text IS 'text';
CREATE TABLE movies (id VARCHAR, title VARCHAR);
