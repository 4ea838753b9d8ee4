CREATE TABLE cars (car_id INTEGER, vin VARCHAR, year INTEGER, transmission VARCHAR, fuel_type VARCHAR);
CREATE TABLE car_images (car_id INTEGER, image VARCHAR);
COMMENT ON COLUMN car_images.image IS 'image';
CREATE TABLE car_audio (car_id INTEGER, audio VARCHAR);
COMMENT ON COLUMN car_audio.audio IS 'audio';
CREATE TABLE complaints (car_id INTEGER, summary VARCHAR);
COMMENT ON COLUMN complaints.summary IS 'text';
