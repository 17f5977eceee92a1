//! Figure 3: non-linear causal graphs over 10 nodes, found from more and more rows, beside DAGMA and DiBS.

mod plot;
mod rows;
mod settings;
mod summary;

use std::slice;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use vti::problem::dag::simulate::{Simulated, SimulationSettings, simulate};
use vti::problem::dag::{Dag, NodeData};

use self::rows::{Case, Run};
use self::settings::Settings;
use super::graphs::{Answer, Asked, Finished, Job, Journal, Method, PeerArgs, Scored, learn, table, trivial};
use super::results::Results;
use super::session::{Session, threads};
use super::study::data_seed;
use super::{CommonArgs, DataSetsArgs, number};

/// Options of `figure3`.
#[derive(Args)]
pub(super) struct Figure3Args {
    #[command(flatten)]
    pub(super) common: CommonArgs,
    #[command(flatten)]
    pub(super) data_sets: DataSetsArgs,
    #[command(flatten)]
    peers: PeerArgs,
    /// Numbers of rows instead of the scale's
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = number::<2, 1_000_000>)]
    pub(super) rows: Vec<usize>,
    /// Nodes of the graphs
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = number::<2, 20>)]
    pub(super) nodes: usize,
    /// Training steps of the paper's own family instead of the scale's number; 0: without it
    #[arg(long, value_name = "N")]
    pub(super) joint_steps: Option<u64>,
}

pub(super) fn run(args: &Figure3Args, talk: &dyn Fn(&str)) -> Result<()> {
    let settings = Settings::new(args);
    let folder = args.common.folder("figure3");
    let results = Results::<Finished<Case>>::open(&folder, &settings)?;
    let lanes = args.peers.start(threads(args.common.threads), talk)?;
    let sets: Vec<Simulated> = (1..=settings.data_sets).map(|set| data(&settings, set)).collect::<Result<_>>()?;
    let mut runs = vec![Run::Trivial, Run::Vti];
    runs.extend(settings.joint.as_ref().map(|_| Run::Joint));
    let peers = if lanes.is_some() { vec![Run::Dagma, Run::Dibs] } else { Vec::new() };
    let (own, others) = (cases(&settings, &runs), cases(&settings, &peers));
    let mut journal = Journal::new(results, &[&own[..], &others].concat(), args.common.threads, talk)?;
    for case in own {
        if !journal.is_done(&case) {
            let fit = fit(&journal.session, &settings, &sets[case.data_set - 1], case)?;
            journal.add(fit)?;
        }
    }
    if let Some(lanes) = lanes {
        let jobs = others.into_iter().map(|case| asked(&settings, &sets[case.data_set - 1], case)).collect();
        journal.ask(lanes, jobs, |case, answers| chosen(answers, &sets[case.data_set - 1]))?;
    }
    let (session, results) = journal.close();
    write(&results, &settings)?;
    session.say(&format!("tables and plots are in {}", results.folder().display()));
    Ok(())
}

/// These runs for all sizes and data sets.
fn cases(settings: &Settings, runs: &[Run]) -> Vec<Case> {
    let sizes = settings.rows.iter().flat_map(|&rows| (1..=settings.data_sets).map(move |set| (rows, set)));
    sizes.flat_map(|(rows, data_set)| runs.iter().map(move |&run| Case { data_set, rows, run })).collect()
}

/// A data set, and the graph that made it.
fn data(settings: &Settings, data_set: usize) -> Result<Simulated> {
    Ok(simulate(&SimulationSettings { seed: data_seed(settings.seed, data_set), ..settings.simulation })?)
}

/// One of our own.
fn fit(session: &Session<'_>, settings: &Settings, made: &Simulated, case: Case) -> Result<Finished<Case>> {
    let seed = data_seed(settings.seed, case.data_set);
    let first = |column: &Vec<f64>| column.iter().take(case.rows).copied().collect();
    let columns = made.table.columns.iter().map(first).collect();
    let dag = Arc::new(Dag::new(NodeData { columns, ..made.table.clone() }, settings.assumed.clone())?);
    let (family, train) = match (case.run, &settings.joint) {
        (Run::Joint, Some(joint)) => (&joint.family, &joint.train),
        (Run::Trivial, _) => {
            let prior = dag.prior().edge_probabilities();
            let answers =
                trivial(slice::from_ref(&made.truth), prior.as_deref(), settings.simulation.edge_probability)?;
            return Ok(Finished::own(case, answers, 0.0, None));
        }
        _ => (&settings.family, &settings.train),
    };
    let train = vti::train::TrainSettings { seed, ..train.clone() };
    let (mut answers, seconds, khat) = learn(&session.device, &dag, family, &train, &settings.check)?;
    if case.run == Run::Joint {
        answers.retain(|answer| answer.method == Method::Vti);
        answers.iter_mut().for_each(|answer| answer.method = Method::VtiJoint);
    }
    let scored =
        answers.iter().map(|answer| Scored::new(answer, slice::from_ref(&made.truth))).collect::<Result<_>>()?;
    Ok(Finished::own(case, scored, seconds, khat))
}

/// What a peer is to do.
fn asked<'a>(settings: &'a Settings, made: &'a Simulated, case: Case) -> Asked<'a, Case> {
    Asked {
        case,
        job: if case.run == Run::Dagma { Job::Dagma(&settings.dagma) } else { Job::Dibs(&settings.dibs) },
        table: &made.table,
        rows: case.rows,
        seed: data_seed(settings.seed, case.data_set),
    }
}

/// All answers of a peer; of a path over λ also those that an oracle would choose.
fn chosen(answers: &[Answer], made: &Simulated) -> Result<Vec<Scored>> {
    let mut scored: Vec<Scored> =
        answers.iter().map(|answer| Scored::new(answer, slice::from_ref(&made.truth))).collect::<Result<_>>()?;
    let path = || scored.iter().filter(|scored| scored.method == Method::Dagma);
    let f1 = |scored: &Scored| scored.scores.first().and_then(|scores| scores.f1_mean).unwrap_or(0.0);
    let wanted = made.truth.edge_count() as f64;
    let off = |scored: &Scored| (scored.edges.unwrap_or(0.0) - wanted).abs();
    // Of equals the first: the smallest λ.
    let best = path().reduce(|best, other| if f1(other) > f1(best) { other } else { best });
    let nearest = path().reduce(|best, other| if off(other) < off(best) { other } else { best });
    let more = [(Method::DagmaBestF1, best), (Method::DagmaEdgeCount, nearest)];
    let more: Vec<Scored> =
        more.into_iter().filter_map(|(method, scored)| Some(Scored { method, ..scored?.clone() })).collect();
    scored.extend(more);
    Ok(scored)
}

/// Tables, the plot and the page in words.
fn write(results: &Results<Finished<Case>>, settings: &Settings) -> Result<()> {
    let fits = &results.finished;
    let case = |case: &Case, _| vec![case.rows.to_string(), case.data_set.to_string()];
    results.write("fits.csv", &table(&["rows", "data_set"], fits, case)?)?;
    let means = rows::means(fits, settings);
    results.write("summary.csv", &rows::means_table(&means)?)?;
    results.write("summary.md", &summary::page(&means, fits, settings))?;
    results.write("figure3.svg", &plot::figure(&means, settings).svg())
}
