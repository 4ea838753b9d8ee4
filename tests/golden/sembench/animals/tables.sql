CREATE TABLE images (image BLOB, city VARCHAR, station VARCHAR);
COMMENT ON COLUMN images.image IS 'image';
CREATE TABLE recordings (audio BLOB, city VARCHAR, station VARCHAR);
COMMENT ON COLUMN recordings.audio IS 'audio';
