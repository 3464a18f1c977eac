//! Cost reports, against sums that the test computes itself.

use std::{cmp::Reverse, collections::BTreeMap};

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Europe::Berlin;
use dalsegno::domain::{
    campaigns,
    costs::{self, CallFilter, CostLine, CostReport, Costs, Dimension, Measure, Question, Top},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    app::{TestDatabase, eventually, noon},
    conversations::world::World,
};

const DIMENSIONS: [Dimension; 7] = [
    Dimension::Day,
    Dimension::Campaign,
    Dimension::Agent,
    Dimension::Model,
    Dimension::Provider,
    Dimension::Purpose,
    Dimension::User,
];
const TIME_ZONE: &str = "Europe/Berlin";
const N_CALLS: usize = 10_000;
const SEED: u64 = 21;

/// The values of one or two dimensions.
type Values = (Option<String>, Option<String>);

/// A row of the ledger.
#[derive(Debug, Clone)]
struct LedgerRow {
    called_at: DateTime<Utc>,
    campaign: usize,
    agent: &'static str,
    model: &'static str,
    provider: &'static str,
    purpose: &'static str,
    cost_micros: i64,
    /// Input, output, read from the cache, written to it.
    tokens: [Option<i64>; 4],
}

impl LedgerRow {
    /// No row of these tests has a price.
    fn is_unpriced(&self) -> bool {
        self.cost_micros == 0 && self.tokens.iter().flatten().sum::<i64>() > 0
    }
}

struct Ledger {
    pool: PgPool,
    campaigns: Vec<(Uuid, Option<&'static str>)>,
    rows: Vec<LedgerRow>,
    _database: TestDatabase,
}

fn pick<T: Copy>(random: &mut StdRng, all: &[T]) -> T {
    all[random.random_range(0..all.len())]
}

/// Makes a call within about two months around the end of summer time.
fn random_row(random: &mut StdRng) -> LedgerRow {
    let begin: DateTime<Utc> = "2026-10-01T00:00:00Z".parse().unwrap();
    let mut count = || random.random_bool(0.9).then(|| random.random_range(0..100_000));
    let tokens = [count(), count(), count(), count()];
    LedgerRow {
        called_at: begin + TimeDelta::seconds(random.random_range(0..5_000_000)),
        campaign: random.random_range(0..4),
        agent: pick(random, &["planner", "copywriter", "reviewer"]),
        model: pick(random, &["qwen3:8b", "opus", "a \"b\", c"]),
        provider: pick(random, &["ollama", "claude"]),
        purpose: pick(random, &["turn", "summary", "facts", "rerun"]),
        cost_micros: random.random_range(0..2_000_000) * i64::from(random.random_bool(0.7)),
        tokens,
    }
}

impl Ledger {
    async fn new(n_calls: usize) -> Self {
        let database = TestDatabase::migrated().await;
        let pool = database.pool().await;
        let mut known = Vec::new();
        for (name, user) in [
            ("Spring", Some("ann")),
            ("Summer", Some("ann")),
            ("Autumn", Some("ben")),
            ("Winter", None),
        ] {
            let new = campaigns::New {
                name,
                brief: "",
                client_context: None,
                limit: dalsegno::domain::amount::Limit::default(),
            };
            let mut conn = pool.acquire().await.unwrap();
            let id = campaigns::create(&mut conn, &new, noon()).await.unwrap().id;
            if let Some(user) = user {
                let sql = "insert into dalsegno.campaign_users (campaign_id, since, user_name) values ($1, now(), $2)";
                sqlx::query(sql).bind(id).bind(user).execute(&pool).await.unwrap();
            }
            known.push((id, user));
        }
        let mut random = StdRng::seed_from_u64(SEED);
        let rows = (0..n_calls).map(|_| random_row(&mut random)).collect();
        let ledger = Self { pool, campaigns: known, rows, _database: database };
        ledger.store().await;
        ledger
    }

    async fn store(&self) {
        let column = |text: fn(&LedgerRow) -> &str| -> Vec<String> {
            self.rows.iter().map(|row| text(row).to_owned()).collect()
        };
        let tokens = |at: usize| self.rows.iter().map(|row| row.tokens[at]).collect::<Vec<_>>();
        let campaigns: Vec<Uuid> =
            self.rows.iter().map(|row| self.campaigns[row.campaign].0).collect();
        sqlx::query(
            "insert into dalsegno.usage (called_at, campaign_id, agent, model, provider, purpose, cost_micros, input_tokens, output_tokens,
                                         cache_read_tokens, cache_creation_tokens, outcome)
             select *, 'done' from unnest($1::timestamptz[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[],
                                          $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])",
        )
        .bind(self.rows.iter().map(|row| row.called_at).collect::<Vec<_>>())
        .bind(campaigns)
        .bind(column(|row| row.agent))
        .bind(column(|row| row.model))
        .bind(column(|row| row.provider))
        .bind(column(|row| row.purpose))
        .bind(self.rows.iter().map(|row| row.cost_micros).collect::<Vec<_>>())
        .bind(tokens(0))
        .bind(tokens(1))
        .bind(tokens(2))
        .bind(tokens(3))
        .execute(&self.pool)
        .await
        .unwrap();
    }

    fn value(&self, row: &LedgerRow, dimension: Dimension) -> Option<String> {
        let (campaign, user) = self.campaigns[row.campaign];
        match dimension {
            Dimension::Day => Some(row.called_at.with_timezone(&Berlin).date_naive().to_string()),
            Dimension::Campaign => Some(campaign.to_string()),
            Dimension::Agent => Some(row.agent.to_owned()),
            Dimension::Model => Some(row.model.to_owned()),
            Dimension::Provider => Some(row.provider.to_owned()),
            Dimension::Purpose => Some(row.purpose.to_owned()),
            Dimension::User => user.map(str::to_owned),
        }
    }

    /// Adds up rows in a way of its own.
    fn sums(&self, by: Dimension, and: Option<Dimension>) -> BTreeMap<Values, Costs> {
        let mut sums = BTreeMap::new();
        for row in &self.rows {
            let key = (self.value(row, by), and.and_then(|and| self.value(row, and)));
            let sum: &mut Costs = sums.entry(key).or_default();
            let [input, output, read, written] = row.tokens.map(|count| count.unwrap_or(0));
            sum.calls += 1;
            sum.cost_micros += row.cost_micros;
            sum.input_tokens += input;
            sum.output_tokens += output;
            sum.cache_read_tokens += read;
            sum.cache_creation_tokens += written;
            sum.calls_without_price += i64::from(row.is_unpriced());
        }
        sums
    }

    /// Adds the first rows to the sums of their days.
    async fn add_up_first(&self, n: usize) {
        let note = "update dalsegno.ledger_sums set time_zone = $1, next_after = '3',
                next_up_to = (select id from dalsegno.usage order by id offset $2 - 1 limit 1)";
        let note = sqlx::query(note).bind(TIME_ZONE).bind(n as i64);
        note.execute(&self.pool).await.unwrap();
        costs::add_up_days(&self.pool, TIME_ZONE).await.unwrap();
        assert_eq!(self.added_calls().await, n as i64);
    }

    async fn added_calls(&self) -> i64 {
        let calls = "select coalesce(sum(calls), 0)::bigint from dalsegno.ledger_days";
        sqlx::query_scalar(calls).fetch_one(&self.pool).await.unwrap()
    }

    async fn report(&self, question: Question<'_>) -> Result<CostReport, costs::Error> {
        let mut conn = self.pool.acquire().await.unwrap();
        costs::report(&mut conn, &question, "EUR").await
    }
}

fn question(by: Dimension, and: Option<Dimension>) -> Question<'static> {
    Question {
        by,
        and,
        top: None,
        time_zone: TIME_ZONE,
        since: None,
        until: None,
        campaign_id: None,
        within: None,
    }
}

fn add(lines: &[CostLine]) -> Costs {
    let mut sum = Costs::default();
    for CostLine { costs, .. } in lines {
        sum.calls += costs.calls;
        sum.cost_micros += costs.cost_micros;
        sum.input_tokens += costs.input_tokens;
        sum.output_tokens += costs.output_tokens;
        sum.cache_read_tokens += costs.cache_read_tokens;
        sum.cache_creation_tokens += costs.cache_creation_tokens;
        sum.calls_without_price += costs.calls_without_price;
    }
    sum
}

#[tokio::test]
async fn every_dimension_and_pair_adds_up_to_the_ledger() {
    let ledger = Ledger::new(N_CALLS).await;
    ledger.add_up_first(N_CALLS / 2).await;
    let all = "select count(*), sum(cost_micros)::bigint, sum(input_tokens)::bigint, sum(output_tokens)::bigint,
                      sum(cache_read_tokens)::bigint, sum(cache_creation_tokens)::bigint from dalsegno.usage";
    let (calls, cost_micros, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens) =
        sqlx::query_as(all).fetch_one(&ledger.pool).await.unwrap();
    assert_eq!(calls, N_CALLS as i64);
    let total = Costs {
        calls,
        cost_micros,
        input_tokens,
        output_tokens,
        cache_read_tokens,
        cache_creation_tokens,
        calls_without_price: ledger.rows.iter().filter(|row| row.is_unpriced()).count() as i64,
    };
    assert!(total.calls_without_price > N_CALLS as i64 / 4, "{total:?}");
    let seconds = || DIMENSIONS.into_iter().map(Some).chain([None]);
    let pairs = DIMENSIONS.into_iter().flat_map(|by| seconds().map(move |and| (by, and)));
    for (by, and) in pairs.filter(|(by, and)| *and != Some(*by)) {
        let report = ledger.report(question(by, and)).await.unwrap();
        assert_eq!((report.total, add(&report.lines)), (total, total), "{by:?} {and:?}");
        let told: BTreeMap<_, _> = report
            .lines
            .iter()
            .map(|CostLine { value, second, costs }| ((value.clone(), second.clone()), *costs))
            .collect();
        assert_eq!(told, ledger.sums(by, and), "{by:?} {and:?}");
        assert_eq!(told.len(), report.lines.len(), "{by:?} {and:?}: a line is there twice");
        let order = |line: &CostLine| (line.costs.cost_micros, line.costs.tokens());
        let is_sorted = report.lines.is_sorted_by(|a, b| order(a) >= order(b));
        let has_days = [Some(by), and].contains(&Some(Dimension::Day));
        assert!(has_days || is_sorted, "{by:?} {and:?}: the highest costs come first");
    }
    let named = ledger.report(question(Dimension::Agent, Some(Dimension::Campaign))).await.unwrap();
    assert_eq!(named.campaign_names[&ledger.campaigns[3].0], "Winter");
    assert_eq!(named.campaign_names.len(), 4);
}

#[tokio::test]
async fn a_period_and_campaigns_limit_a_report() {
    let ledger = Ledger::new(500).await;
    let since = Some("2026-10-10T12:00:00Z".parse().unwrap());
    let until = Some("2026-11-01T00:00:00Z".parse().unwrap());
    let within = [ledger.campaigns[0].0, ledger.campaigns[1].0];
    let campaign_id = Some(ledger.campaigns[1].0);
    let by_day = question(Dimension::Day, None);
    let wanted = |is_in: &dyn Fn(&LedgerRow) -> bool| {
        let rows = ledger.rows.iter().filter(|row| is_in(row));
        let (calls, cost) = rows.fold((0, 0), |(n, sum), row| (n + 1, sum + row.cost_micros));
        assert!(calls > 0);
        (calls, cost)
    };
    let told = async |question| {
        let total = ledger.report(question).await.unwrap().total;
        (total.calls, total.cost_micros)
    };
    let is_in = |row: &LedgerRow| Some(row.called_at) >= since && Some(row.called_at) < until;
    assert_eq!(told(Question { since, until, ..by_day }).await, wanted(&is_in));
    let within = Question { within: Some(&within), ..by_day };
    assert_eq!(told(within).await, wanted(&|row| row.campaign < 2));
    assert_eq!(told(Question { campaign_id, ..within }).await, wanted(&|row| row.campaign == 1));
    let other = Some(ledger.campaigns[3].0);
    assert_eq!(told(Question { campaign_id: other, ..within }).await, (0, 0), "out of reach");
    let twice = ledger.report(question(Dimension::Day, Some(Dimension::Day))).await.unwrap_err();
    assert!(twice.to_string().contains("the same"), "{twice}");
}

/// The pairs with users contain calls of no user.
#[tokio::test]
async fn a_report_of_the_highest_values_adds_up_all_others() {
    const PAIRS: [(Dimension, Option<Dimension>); 6] = [
        (Dimension::Agent, None),
        (Dimension::Day, Some(Dimension::Campaign)),
        (Dimension::Day, Some(Dimension::User)),
        (Dimension::User, Some(Dimension::Day)),
        (Dimension::Campaign, Some(Dimension::Agent)),
        (Dimension::Campaign, Some(Dimension::Day)),
    ];
    let ledger = Ledger::new(N_CALLS).await;
    ledger.add_up_first(N_CALLS / 2).await;
    for ((by, and), measure) in PAIRS.into_iter().zip([Measure::Money, Measure::Tokens].repeat(3)) {
        let mut ranked: Vec<_> = ledger.sums(and.unwrap_or(by), None).into_iter().collect();
        ranked.sort_by_key(|(_, costs)| Reverse(measure.of(costs)));
        let top = Some(Top { n: 2, by: measure });
        let highest: Vec<_> = ranked.iter().take(2).map(|((value, _), _)| value.clone()).collect();
        let is_high = |value: &Option<String>| highest.contains(value);
        let report = ledger.report(Question { top, ..question(by, and) }).await.unwrap();
        let mut others: BTreeMap<Option<String>, Costs> = BTreeMap::new();
        let mut lines = BTreeMap::new();
        for ((value, second), costs) in ledger.sums(by, and) {
            match and {
                Some(_) if !is_high(&second) => others.entry(value).or_default().add(&costs),
                None if !is_high(&value) => others.entry(None).or_default().add(&costs),
                _ => drop(lines.insert((value, second), costs)),
            }
        }
        let told = report.lines.iter().map(|it| ((it.value.clone(), it.second.clone()), it.costs));
        assert_eq!(told.collect::<BTreeMap<_, _>>(), lines, "{by:?} {and:?}");
        let told = report.others.iter().map(|it| (it.value.clone(), it.costs));
        assert_eq!(told.collect::<BTreeMap<_, _>>(), others, "{by:?} {and:?}");
        assert_eq!(report.n_others, ranked.len() as i64 - 2, "{by:?} {and:?}");
        assert!(report.n_others > 0, "{by:?} {and:?}");
        let all = ledger.report(question(by, and)).await.unwrap();
        assert_eq!((report.total, all.n_others), (all.total, 0));
    }
}

#[tokio::test]
async fn a_campaign_whose_calls_are_all_added_up_has_its_name() {
    let mut ledger = Ledger::new(0).await;
    let row = random_row(&mut StdRng::seed_from_u64(SEED));
    ledger.rows = vec![
        LedgerRow { campaign: 0, agent: "planner", cost_micros: 10, ..row.clone() },
        LedgerRow { campaign: 3, agent: "writer", cost_micros: 1, ..row },
    ];
    ledger.store().await;
    let top = Some(Top { n: 1, by: Measure::Money });
    let by_agent = question(Dimension::Campaign, Some(Dimension::Agent));
    let report = ledger.report(Question { top, ..by_agent }).await.unwrap();
    let winter = ledger.campaigns[3].0;
    assert_eq!(report.others[0].value, Some(winter.to_string()));
    assert_eq!((report.lines.len(), report.others.len(), report.n_others), (1, 1, 1));
    assert_eq!(report.campaign_names[&winter], "Winter");
}

/// Returns a moment: of a day in the middle, or its begin.
fn random_moment(random: &mut StdRng) -> DateTime<Utc> {
    let at = random_row(random).called_at;
    let day = at.with_timezone(&Berlin).date_naive().and_time(chrono::NaiveTime::MIN);
    let midnight = day.and_local_timezone(Berlin).unwrap().to_utc();
    if random.random_bool(0.4) { midnight } else { at }
}

#[tokio::test]
async fn any_period_is_the_same_with_and_without_sums_by_day() {
    let ledger = Ledger::new(2_000).await;
    let mut random = StdRng::seed_from_u64(SEED);
    for n_added in [0, 900, 2_000] {
        if n_added > 0 {
            ledger.add_up_first(n_added).await;
        }
        for _ in 0..60 {
            let mut bound = || random.random_bool(0.9).then(|| random_moment(&mut random));
            let (since, mut until) = (bound(), bound());
            if random.random_bool(0.2) {
                until = since.map(|since| since + TimeDelta::hours(random.random_range(1..30)));
            }
            let question =
                Question { since, until, ..question(Dimension::Day, Some(Dimension::Agent)) };
            let total = ledger.report(question).await.unwrap().total;
            let is_in = |row: &&LedgerRow| {
                since.is_none_or(|since| row.called_at >= since)
                    && until.is_none_or(|until| row.called_at < until)
            };
            let rows = ledger.rows.iter().filter(is_in);
            let sum = rows.fold((0, 0), |(n, sum), row| (n + 1, sum + row.cost_micros));
            assert_eq!((total.calls, total.cost_micros), sum, "{n_added}: {since:?} to {until:?}");
        }
    }
}

#[tokio::test]
async fn a_call_that_is_committed_late_is_added_up_once() {
    let mut ledger = Ledger::new(5).await;
    let mut open = ledger.pool.begin().await.unwrap();
    let copy = "insert into dalsegno.usage (called_at, campaign_id, agent, model, provider, purpose, outcome, cost_micros)
         select called_at, campaign_id, agent, model, provider, purpose, outcome, 7 from dalsegno.usage order by id limit 1";
    sqlx::query(copy).execute(&mut *open).await.unwrap();
    // These rows have later ids, and are committed before.
    ledger.rows.truncate(3);
    ledger.store().await;
    let add_up = async || {
        costs::add_up_days(&ledger.pool, TIME_ZONE).await.unwrap();
        costs::add_up_days(&ledger.pool, TIME_ZONE).await.unwrap();
        ledger.added_calls().await
    };
    assert_eq!(add_up().await, 0, "an earlier row may still come");
    let told = async || ledger.report(question(Dimension::Agent, None)).await.unwrap().total.calls;
    assert_eq!(told().await, 8);
    open.commit().await.unwrap();
    assert_eq!(told().await, 9);
    eventually("all rows are added up", async || (add_up().await == 9).then_some(())).await;
    assert_eq!(told().await, 9);
    assert_eq!(add_up().await, 9);
    costs::add_up_days(&ledger.pool, "Asia/Tokyo").await.unwrap();
    assert_eq!(told().await, 9, "days of another time zone are not used");
}

#[tokio::test]
async fn the_calls_behind_a_line_add_up_to_it() {
    let ledger = Ledger::new(500).await;
    let by_agent = question(Dimension::Agent, Some(Dimension::User));
    let report = ledger.report(by_agent).await.unwrap();
    for line in &report.lines {
        let filter = CallFilter {
            agent: line.value.as_deref(),
            user: Some(line.second.as_deref().unwrap_or_default()),
            ..CallFilter::default()
        };
        let calls = costs::newest_calls(&ledger.pool, &filter, None, 1_000).await.unwrap();
        let cost: i64 = calls.iter().map(|it| it.call.cost_micros).sum();
        assert_eq!((calls.len() as i64, cost), (line.costs.calls, line.costs.cost_micros));
        assert!(calls.windows(2).all(|pair| pair[0].call.id > pair[1].call.id));
        // The second page goes on after the first.
        let first = costs::newest_calls(&ledger.pool, &filter, None, 2).await.unwrap();
        let rest = costs::newest_calls(&ledger.pool, &filter, Some(first[1].call.id), 1_000).await;
        assert_eq!([first, rest.unwrap()].concat(), calls);
        let top = costs::costliest_calls(&ledger.pool, &filter, 3).await.unwrap();
        let highest = calls.iter().map(|it| it.call.cost_micros).max().unwrap();
        assert_eq!((top.len(), top[0].call.cost_micros), (3, highest));
    }
    let within = [ledger.campaigns[0].0];
    let bound = CallFilter { within: Some(&within), ..CallFilter::default() };
    let calls = costs::costliest_calls(&ledger.pool, &bound, 1_000).await.unwrap();
    assert!(!calls.is_empty() && calls.iter().all(|it| it.campaign_id == within[0]));
}

#[tokio::test]
async fn days_begin_at_midnight_of_the_time_zone_also_when_clocks_change() {
    let mut ledger = Ledger::new(0).await;
    // Summer time ends on 25 October 2026 at 01:00 UTC.
    let times = [
        "2026-10-24T21:59:59Z",
        "2026-10-24T22:00:00Z",
        "2026-10-25T22:59:59Z",
        "2026-10-25T23:00:00Z",
    ];
    let row = random_row(&mut StdRng::seed_from_u64(SEED));
    ledger.rows =
        times.map(|at| LedgerRow { called_at: at.parse().unwrap(), ..row.clone() }).into();
    ledger.store().await;
    let report = ledger.report(question(Dimension::Day, None)).await.unwrap();
    let days: Vec<_> = report
        .lines
        .iter()
        .map(|line| (line.value.as_deref().unwrap(), line.costs.calls))
        .collect();
    assert_eq!(days, [("2026-10-24", 1), ("2026-10-25", 2), ("2026-10-26", 1)]);
}

#[tokio::test]
async fn an_empty_ledger_has_a_total_of_zero() {
    let world = World::new().await;
    let mut conn = world.pool.acquire().await.unwrap();
    let by_user = question(Dimension::User, None);
    let report = costs::report(&mut conn, &by_user, "EUR").await.unwrap();
    assert_eq!((report.lines.len(), report.total), (0, Costs::default()));
}
