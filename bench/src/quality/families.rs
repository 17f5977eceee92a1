//! Both families over graphs: a flow for each node, told its parents, against the paper's one flow over all coordinates.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use vti::device::Cpu;
use vti::family::FamilySettings;
use vti::graph::metrics::Scores;
use vti::problem::dag::simulate::{Simulated, SimulationSettings, simulate};
use vti::problem::dag::{Dag, GraphPrior, Sem};
use vti::train::{Silent, TrainSettings, Trainer};

use super::graphs::{dag, mean};
use crate::Options;
use crate::report::{Line, Report};

const CASE: &str = "dag-families";
const NODES: usize = 6;
const SETS: u64 = 3;

/// How many times as many steps the joint flow gets, the second time.
const PATIENCE: u64 = 10;

/// Draws for the bound and for scores.
const DRAWS: usize = 4096;

/// What the case is.
pub(super) fn note() -> String {
    let TrainSettings { steps, batch, .. } = TrainSettings::blockwise();
    format!(
        "Graphs, {CASE}: {NODES} nodes, 10 hidden units, 1,024 rows, {SETS} data sets. Ours: a flow for each node, and scores of \
         sets of parents, {steps} steps of {batch} draws. Peer: the paper's family, Affine(5,5) of 128 units over all coordinates \
         and MADE+, with as many steps and draws, then with {PATIENCE} times the steps. All by q, without corrections."
    )
}

/// What a family came to on one data set.
struct Fitted {
    bound: f64,
    f1: f64,
    shd: f64,
    seconds: f64,
}

/// What it is called, its unit and its target, and where it stands.
type Figure = (&'static str, &'static str, &'static str, fn(&Fitted) -> f64);

/// Means over data sets, with as many steps and with more.
pub(super) fn run(report: &mut Report, device: &Cpu<f32>, options: &Options) -> Result<()> {
    if !options.wants(CASE) {
        return Ok(());
    }
    let sets = if options.quick { 1 } else { SETS };
    let (mut own, mut joint, mut patient) = (vec![], vec![], vec![]);
    for seed in 1..=sets {
        let made = simulate(&SimulationSettings { nodes: NODES, seed, ..SimulationSettings::default() })?;
        let dag = dag(&made, Sem::default(), GraphPrior::Orders)?;
        let train = TrainSettings { seed, ..TrainSettings::blockwise() };
        // What is not a size is each family's own.
        let plain = TrainSettings { seed, steps: train.steps, batch: train.batch, ..TrainSettings::default() };
        let longer = TrainSettings { steps: PATIENCE * plain.steps, ..plain.clone() };
        own.push(fit(device, &dag, &made, &FamilySettings::default(), &train)?);
        joint.push(fit(device, &dag, &made, &FamilySettings::joint_affine(), &plain)?);
        if !options.quick {
            patient.push(fit(device, &dag, &made, &FamilySettings::joint_affine(), &longer)?);
        }
    }
    let all = [(&joint, "as many steps".to_owned()), (&patient, format!("{PATIENCE} times the steps"))];
    for (peer, steps) in all.iter().filter(|(peer, _)| !peer.is_empty()) {
        let above: Vec<f64> = own.iter().zip(*peer).map(|(own, peer)| own.bound - peer.bound).collect();
        let what = format!("bound above that of joint, {steps}");
        report.push(Line::figure(CASE, &what, mean(&above).unwrap_or(f64::NAN), "nats", "> 0"))?;
        let figures: [Figure; 3] = [
            ("F1", "", "> 1", |fitted| fitted.f1),
            ("SHD", "", "< 1", |fitted| fitted.shd),
            ("training", "s", "", |fitted| fitted.seconds),
        ];
        for (what, unit, target, figure) in figures {
            let over = |fits: &[Fitted]| mean(&fits.iter().map(figure).collect::<Vec<_>>());
            let ours = over(&own).unwrap_or(f64::NAN);
            let what = format!("{what}; peer: joint, {steps}");
            report.push(Line { unit, ..Line::against(CASE, &what, ours, over(peer), target) })?;
        }
    }
    Ok(())
}

fn fit(
    device: &Cpu<f32>,
    dag: &Arc<Dag>,
    made: &Simulated,
    family: &FamilySettings,
    train: &TrainSettings,
) -> Result<Fitted> {
    let start = Instant::now();
    let fit = Trainer::new(dag.clone(), device.clone(), family, train)?.run(&mut Silent)?;
    let seconds = start.elapsed().as_secs_f64();
    let bound = fit.posterior.elbo(DRAWS)?.value;
    let drawn = fit.posterior.draw(DRAWS, 0)?;
    let graphs = dag.graphs((0..drawn.len()).map(|row| (drawn.word(row), 1.0)));
    let scores = Scores::of_samples(&made.truth, &graphs)?;
    Ok(Fitted { bound, f1: scores.f1_mean.unwrap_or(f64::NAN), shd: scores.expected_shd2.unwrap_or(f64::NAN), seconds })
}
