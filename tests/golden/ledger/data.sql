CREATE TABLE reviews AS SELECT i AS id, i % 3 AS shop, i % 5 + 1 AS stars, DATE '2024-01-01' + i::INTEGER AS day, 'A review of product ' || i % 7 || ', written by customer number ' || i AS text, CASE WHEN i % 6 = 0 THEN NULL ELSE 'some note about order ' || i * 17 || ' of that day' END AS note FROM range(30) r(i);
CREATE TABLE shops AS SELECT i AS shop, ['Rome', 'Oslo', 'Lima'][i + 1] AS city, 'The shop in ' || ['Rome', 'Oslo', 'Lima'][i + 1] || ', open since ' || 1990 + i AS description FROM range(3) r(i);
CREATE TABLE topics AS SELECT unnest(['price', 'quality', 'delivery']) AS name;
