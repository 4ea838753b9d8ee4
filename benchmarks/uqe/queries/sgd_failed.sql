SELECT id FROM labels WHERE outcome = 'failed'
