//! What runs write and other commands read: checkpoints, posteriors, preparations, particles, draws; and points for them.

use std::sync::{Arc, OnceLock};

use vti::answer::{Answer, Subject};
use vti::check::Particles;
use vti::device::Cpu;
use vti::posterior::{GraphPosterior, Posterior};
use vti::problem::Problem;
use vti::problem::dag::simulate::{SimulationSettings, simulate};
use vti::problem::dag::{Dag, DagSettings, Noise, Sem};
use vti::problem::selection::simulate::{CorrelatedSettings, correlated};
use vti::problem::selection::{Selection, SelectionSettings, Standardise};
use vti::train::{Trainer, parse_preparation};
use vti::workers::Workers;
use vti_report::files::parse_draws;
use vti_report::{Beside, page};

use super::nowhere;
use crate::closed_form::Known as InClosedForm;
use crate::commands::log_prob::{Known, densities};
use crate::commands::predict::Learned;
use crate::data::{Schema, Source, Words};

pub(super) type Error = Box<dyn std::error::Error + Send + Sync>;

/// Small questions.
pub(super) struct Questions {
    pub(super) selection: Arc<Selection>,
    /// Whose evidences are in closed form.
    pub(super) linear: Arc<Dag>,
}

impl Questions {
    fn new() -> Result<Self, Error> {
        let settings = CorrelatedSettings { rows: 12, covariates: 3, relevant: 1, ..CorrelatedSettings::default() };
        let table = correlated(&settings)?.table;
        let selection = Selection::new(&table, Standardise::Full, &SelectionSettings::default())?;
        Ok(Self { selection: Arc::new(selection), linear: dag(Sem::Linear {}, Noise::Unknown {})? })
    }

    /// Whose blocks are prepared: a new one each time, as it keeps what is found.
    pub(super) fn nonlinear(&self) -> Result<Arc<Dag>, Error> {
        dag(Sem::Mlp { hidden: 2, bias: false }, Noise::Known { sigma: 1.0 })
    }

    /// Made once.
    pub(super) fn get() -> Option<&'static Self> {
        static ALL: OnceLock<Option<Questions>> = OnceLock::new();
        ALL.get_or_init(|| Self::new().ok()).as_ref()
    }

    fn problems(&self) -> [Arc<dyn Problem>; 2] {
        [self.selection.clone(), self.linear.clone()]
    }
}

/// Graphs over three nodes.
fn dag(sem: Sem, noise: Noise) -> Result<Arc<Dag>, Error> {
    let table = simulate(&SimulationSettings { nodes: 3, rows: 6, sem, ..SimulationSettings::default() })?.table;
    Ok(Arc::new(Dag::new(table, DagSettings { sem, noise, ..DagSettings::default() })?))
}

/// One thread.
pub(super) fn device() -> Result<Cpu<f64>, Error> {
    static DEVICE: OnceLock<Option<Cpu<f64>>> = OnceLock::new();
    Ok(DEVICE.get_or_init(|| Cpu::new(1).ok()).clone().ok_or("no thread")?)
}

/// Rows of a batch that are worth trying: what larger ones need is no question of how a file is read.
const MAX_ROWS: u64 = 64;

/// What a run keeps: everything that can be read from it is read, with its sum of all bytes made to fit first.
pub(super) fn checkpoint(bytes: &[u8]) -> bool {
    let bytes = with_sum(bytes);
    let content = vti::store::parse::<serde_json::Value>(nowhere(), &bytes);
    let (Ok((content, _)), Some(questions)) = (content, Questions::get()) else { return false };
    if content["rows"].as_u64().is_some_and(|rows| rows > MAX_ROWS) {
        return false;
    }
    let mut is_read = false;
    if content.get("arities").is_some()
        && let Ok(dag) = questions.nonlinear()
        && parse_preparation(nowhere(), &bytes, &*dag).is_ok()
    {
        is_read = dag.blocks().is_some_and(|blocks| blocks.log_evidence_estimate(0, 0b110).is_finite());
    }
    for problem in questions.problems() {
        is_read |= Particles::parse(nowhere(), &bytes, &*problem).is_ok();
        let Ok(device) = device() else { return false };
        if let Ok(posterior) = Posterior::parse(problem.clone(), device.clone(), nowhere(), &bytes) {
            is_read |= posterior.draw(4, 0).is_ok();
        }
        if let Ok(mut trainer) = Trainer::parse(problem, device, nowhere(), &bytes) {
            is_read |= trainer.step().is_ok();
        }
    }
    is_read
}

/// What stands before the digits of the sum.
const SUM: &[u8] = b"\"vti_crc32\":\"";

/// The same bytes with a sum that fits, where there is one: otherwise every change would end there.
pub(super) fn with_sum(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let place = bytes.windows(SUM.len()).position(|part| part == SUM).map(|place| place + SUM.len());
    if let Some(place) = place
        && let Some(digits) = bytes.get_mut(place..place + 8)
    {
        digits.fill(b'0');
        let sum = format!("{:08x}", crc32fast::hash(&bytes));
        bytes[place..place + 8].copy_from_slice(sum.as_bytes());
    }
    bytes
}

/// Draws, and predictions by them.
pub(super) fn draws(bytes: &[u8]) -> bool {
    let Ok((samples, schema)) = parse_draws(nowhere(), bytes.to_vec()) else { return false };
    let _ = page(&Answer::default(), Some(&samples), &Beside::default());
    let Some(schema) = schema.and_then(|schema| serde_json::from_value::<Schema>(schema).ok()) else { return false };
    let new = "x1,x2,x3,y\n1,2,3,0\n0.5,b,,1\n,,,\n2024-01-01,a,c,true\n";
    let source = Source::of_bytes("new.csv", new.into(), 0);
    let Ok(mut raw) = source.and_then(|source| source.parse(&Words::default())) else { return false };
    let learned =
        Learned { samples: &samples, schema: &schema, likelihood: SelectionSettings::default().likelihood, seed: 1 };
    learned.predict(&mut raw, 0.9).is_ok()
}

/// Points, under posteriors that were learned and that are known.
pub(super) fn points(bytes: &[u8]) -> bool {
    let Ok(source) = Source::of_bytes("points.csv", bytes.to_vec(), 0) else { return false };
    let Some((questions, known)) = Questions::get().zip(Answers::get()) else { return false };
    let of_selection = Subject::of_selection(&questions.selection);
    let of_graphs = Subject::of_dag(&questions.linear, &[1.0; 3]);
    let found = [
        densities(&source, &of_selection, &known.learned, &*questions.selection),
        densities(&source, &of_graphs, &known.graphs, &*questions.linear),
    ];
    found.iter().any(Result::is_ok)
}

/// What is known about the questions.
struct Answers {
    learned: Known<'static, Cpu<f64>>,
    graphs: Known<'static, Cpu<f64>>,
}

impl Answers {
    fn new() -> Result<Self, Error> {
        let questions = Questions::get().ok_or("no questions")?;
        let posterior = super::seeds::posterior(questions)?;
        let graphs = GraphPosterior::new(&questions.linear, &Workers::new(1)?, 1)?;
        let graphs = Known::InClosedForm(InClosedForm::Graphs(graphs));
        Ok(Self { learned: Known::Learned(Box::new(posterior)), graphs })
    }

    fn get() -> Option<&'static Self> {
        static ALL: OnceLock<Option<Answers>> = OnceLock::new();
        ALL.get_or_init(|| Self::new().ok()).as_ref()
    }
}
