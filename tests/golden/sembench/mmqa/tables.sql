CREATE TABLE ben_piazza ("Year" BIGINT, "Title" VARCHAR, "Role" VARCHAR, "Notes" VARCHAR);
CREATE TABLE lizzy_caplan ("Year" BIGINT, "Title" VARCHAR, "Role" VARCHAR, "Notes" VARCHAR);
CREATE TABLE texts (title VARCHAR, text VARCHAR);
COMMENT ON COLUMN texts.text IS 'text';
CREATE TABLE tampa_international_airport ("Airlines" VARCHAR, "Destinations" VARCHAR);
COMMENT ON COLUMN tampa_international_airport."Destinations" IS 'text';
CREATE TABLE ap_warrior ("ID" BIGINT, "Finish" VARCHAR, "Race" VARCHAR, "Distance" VARCHAR, "Track" VARCHAR, "Condition" VARCHAR);
CREATE TABLE images (image BLOB, title VARCHAR);
COMMENT ON COLUMN images.image IS 'image';
