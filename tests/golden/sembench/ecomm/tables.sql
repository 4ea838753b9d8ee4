CREATE TABLE products (id INTEGER, name VARCHAR, price DOUBLE, description VARCHAR, base_colour VARCHAR, colour1 VARCHAR, colour2 VARCHAR);
COMMENT ON COLUMN products.name IS 'text';
COMMENT ON COLUMN products.description IS 'text';
CREATE TABLE product_images (filename VARCHAR, image BLOB, product INTEGER);
COMMENT ON COLUMN product_images.image IS 'image';
