SELECT id FROM reviews WHERE {'a': <rating>, 'b': id} IN (SELECT {'a': stars, 'b': id} FROM reviews)
SELECT id FROM reviews WHERE {'a': <rating>, 'b': id} = {'a': 3, 'b': id}
SELECT id FROM reviews WHERE {'a': <rating>, 'b': id} > {'a': 3, 'b': 4}
SELECT id FROM reviews WHERE {'a': <pos>, 'b': film} IN (SELECT {'a': true, 'b': film} FROM films)
SELECT id FROM reviews WHERE {'a': <pos>, 'b': film} IN ({'a': true, 'b': 'Alien'}, {'a': false, 'b': 'Brazil'})
SELECT id FROM reviews WHERE {'a': <topic>, 'b': film} IN (SELECT {'a': 'plot', 'b': film} FROM films)
SELECT id FROM reviews WHERE {'a': <rating>, 'b': {'c': <pos>, 'd': id}} IN (SELECT {'a': stars, 'b': {'c': true, 'd': id}} FROM reviews)
SELECT id FROM reviews WHERE [<rating>, id] IN (SELECT [stars, id] FROM reviews)
SELECT id FROM reviews WHERE [<rating>, id] = [3, id]
SELECT id FROM reviews WHERE struct_pack(a := <rating>) IN (SELECT struct_pack(a := stars) FROM reviews)
SELECT id FROM reviews WHERE {'a': <rating>, 'b': film} = meta
SELECT id FROM reviews WHERE {'a': <rating>, 'b': film} IN (SELECT meta FROM reviews)
SELECT id FROM reviews WHERE {'a': <rating>, 'b': film} = ANY (SELECT meta FROM reviews)
SELECT id FROM reviews WHERE {'a': id, 'b': <name>} IN (SELECT meta FROM reviews)
SELECT id FROM reviews WHERE {'a': <rating>, 'b': film} IS DISTINCT FROM meta
SELECT id FROM reviews WHERE [<name>, film] = ['Ada', film]
SELECT id FROM reviews WHERE [<rating>] = [3]
SELECT id FROM reviews WHERE list_contains([<rating>, 2], 2)
SELECT id FROM reviews WHERE stars = ANY ([PROMPT <rating>, 2]) ### SELECT id FROM reviews WHERE stars = ANY ([<rating>, 2])
SELECT id, {'a': <pos>, 'b': [<joke>, <plot>]} AS x FROM reviews
SELECT id, [<rating>, stars] AS x, [<name>, 'x'] AS y FROM reviews
SELECT id, <pos> AS x, (id, <joke>) AS y FROM reviews
