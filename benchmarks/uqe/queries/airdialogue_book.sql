SELECT id FROM labels WHERE status = 'book'
