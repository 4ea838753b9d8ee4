SELECT id FROM labels WHERE status = 'cancel'
