SELECT id FROM r WHERE positive
