SELECT DISTINCT Airlines FROM tampa_international_airport WHERE Airport IS NULL AND contains(Destinations, 'Frankfurt')
