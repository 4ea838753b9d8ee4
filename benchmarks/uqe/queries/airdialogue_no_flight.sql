SELECT id FROM labels WHERE status = 'no_flight'
