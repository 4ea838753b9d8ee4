SELECT id FROM labels WHERE sentiment = 'positive'
