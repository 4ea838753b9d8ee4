-- which row, distinct values of several arguments, quantiles, lists in order, counts by a condition
!SELECT film, arg_max(id, <rating> * 1000 + id) AS best, arg_min(<name>, id) AS f FROM reviews WHERE text IS NOT NULL GROUP BY film ORDER BY film
!SELECT film, max_by(id, <rating> * 1000 - id), min_by(id, <rating> * 1000 + id) FROM reviews WHERE text IS NOT NULL GROUP BY film ORDER BY film
!SELECT arg_min(<name>, id), arg_max(<written>, id), max_by(<topic>, <rating> * 100 + id), arg_max(id, stars * 100 + id) FILTER (<pos>) FROM reviews WHERE text IS NOT NULL
!SELECT film, quantile_cont(<rating>, 0.5), quantile_disc(<rating>, [0.25, 0.75]), median(<rating>), mad(<rating>) FROM reviews GROUP BY film ORDER BY film
!SELECT mode(<topic>), stddev(<rating>), var_pop(<rating>), kurtosis(<rating>), corr(<rating>, stars), entropy(<topic>) FROM reviews WHERE id < 20
!SELECT list(<name> ORDER BY <rating> DESC, id) AS l FROM reviews WHERE text IS NOT NULL
!SELECT string_agg(DISTINCT <name>, '-' ORDER BY <name>) AS l FROM reviews
!SELECT film, string_agg(DISTINCT film, '+'), list(DISTINCT <topic> ORDER BY <topic>) FROM reviews WHERE text IS NOT NULL GROUP BY film ORDER BY 1
!SELECT sum(DISTINCT <rating>), avg(DISTINCT <rating>), count(DISTINCT <rating>), count(DISTINCT (<name>, <topic>)) FROM reviews
!SELECT film, first(<name> ORDER BY id DESC), last(<name> ORDER BY id DESC) FROM reviews WHERE text IS NOT NULL GROUP BY film ORDER BY 1
!SELECT bool_and(<pos>), bool_or(<joke>), count_if(<pos>), countif(<joke>) FROM reviews
!SELECT film, count_if(<pos>) FILTER (stars > 2) AS n, count_if(<joke> OR stars = 1) FROM reviews GROUP BY film ORDER BY film
!SELECT histogram(<topic>) FROM reviews WHERE text IS NOT NULL
!SELECT film, count_if(<pos>), count_if(stars > 9 AND <joke>), count_if(<rating> > 4) FILTER (WHERE <plot>), count_if(NULL::BOOLEAN) FROM reviews GROUP BY film ORDER BY film
