SELECT id FROM labels WHERE first_intent = 'FindMovies'
