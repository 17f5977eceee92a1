//! DAGMA and DiBS beside ours: two processes side by side.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, mpsc};

use anyhow::Result;
use clap::Args;
use vti::problem::dag::NodeData;

use super::rows::{Answer, Method};
use crate::peers::{Dagma, DagmaPoint, DagmaSettings, Dibs, DibsSettings, Peers};

/// Where the peers are.
#[derive(Args)]
pub(crate) struct PeerArgs {
    /// A Python with the packages of DAGMA and DiBS; without it they are left out
    #[arg(long, value_name = "PYTHON")]
    peers: Option<PathBuf>,
}

/// Two processes that answer.
pub(crate) struct Lanes {
    lanes: [Peers; 2],
}

impl PeerArgs {
    /// Starts them, sharing the threads; none, with a word about how to have them, if there is no Python.
    pub(crate) fn start(&self, threads: usize, talk: &dyn Fn(&str)) -> Result<Option<Lanes>> {
        let Some(python) = &self.peers else {
            talk(
                "without DAGMA and DiBS\nhint: `python3 -m venv peers && peers/bin/pip install --requirement \
                 bench/peer/graphs-requirements.txt` makes an environment for them, and --peers peers/bin/python adds them to \
                 what is here",
            );
            return Ok(None);
        };
        let each = threads.div_ceil(2);
        Ok(Some(Lanes { lanes: [Peers::start(python, each)?, Peers::start(python, each)?] }))
    }
}

/// What a peer is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Job<'a> {
    Dagma(&'a DagmaSettings),
    Dibs(&'a DibsSettings),
}

/// A job of a case with its data.
pub(crate) struct Asked<'a, C> {
    pub(crate) case: C,
    pub(crate) job: Job<'a>,
    pub(crate) table: &'a NodeData,
    pub(crate) rows: usize,
    pub(crate) seed: u64,
}

/// What came of a job.
pub(super) struct Told {
    pub(super) answers: Vec<Answer>,
    pub(super) seconds: f64,
    pub(super) processor_seconds: f64,
    /// Packages and their versions.
    pub(super) by: String,
}

/// Has all jobs done, two at a time, the last first: they are the longest. `done` hears of each.
pub(super) fn ask_all<C: Copy + Send + Sync>(
    lanes: Lanes,
    jobs: &[Asked<'_, C>],
    mut done: impl FnMut(C, Result<Told>) -> Result<()>,
) -> Result<()> {
    let left = Mutex::new(jobs.iter().collect::<Vec<_>>());
    // Tables of one size share what DiBS compiles, so one process does DiBS first and the other DAGMA.
    let next = |dagma_first: bool| {
        let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
        let own = left.iter().rposition(|asked| matches!(asked.job, Job::Dagma(_)) == dagma_first);
        own.map(|place| left.remove(place)).or_else(|| left.pop())
    };
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for (lane, mut peers) in lanes.lanes.into_iter().enumerate() {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(asked) = next(lane == 0) {
                    // Nobody listens any more where the experiment has failed.
                    if sender.send((asked.case, ask(&mut peers, asked))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        receiver.iter().try_for_each(|(case, told)| done(case, told))
    })
}

fn ask<C>(peers: &mut Peers, asked: &Asked<'_, C>) -> Result<Told> {
    let Asked { job, table, rows, seed, .. } = asked;
    let (answers, cost, packages) = match job {
        Job::Dagma(settings) => {
            let found: Dagma = peers.ask("dagma", table, *rows, *seed, settings)?;
            let answer = |point: DagmaPoint| {
                let answer = Answer::of_samples(Method::Dagma, vec![(point.graph, 1.0)]);
                answer.ok().map(|answer| Answer { setting: Some(point.lambda), ..answer })
            };
            (found.path.into_iter().filter_map(answer).collect(), found.cost, ["dagma", "torch"])
        }
        Job::Dibs(settings) => {
            let found: Dibs = peers.ask("dibs", table, *rows, *seed, settings)?;
            let both = [(Method::Dibs, &found.plain), (Method::DibsPlus, &found.plus)];
            // Where all graphs have cycles there is no answer.
            let answers = both.iter().filter_map(|(method, by)| Answer::of_samples(*method, found.weighted(by)).ok());
            (answers.collect(), found.cost, ["dibs-lib", "jax"])
        }
    };
    let version = |package: &str| format!("{package} {}", peers.versions().get(package).map_or("", String::as_str));
    let by = packages.map(version).join(", ");
    Ok(Told { answers, seconds: cost.seconds, processor_seconds: cost.processor_seconds, by })
}
