//! Small files as runs keep them, to begin from.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use vti::device::Cpu;
use vti::family::{FamilySettings, FlowKind, Structure};
use vti::models::{AutoregressiveSettings, CategoricalSettings, ModelsSettings, SurrogateSettings, WordNetSettings};
use vti::posterior::Posterior;
use vti::problem::Problem;
use vti::smc::SmcSettings;
use vti::state::State;
use vti::train::{CheckpointSettings, Silent, TrainSettings, Trainer, save_preparation};

use super::runs::{Error, Questions, device, with_sum};

/// Rows of a batch.
const ROWS: usize = 4;

/// Networks of a few numbers.
fn small(models: ModelsSettings) -> FamilySettings {
    FamilySettings { flow: FlowKind::Diagonal { hidden: vec![1] }, models, ..FamilySettings::default() }
}

/// A posterior that has hardly learned anything.
pub(super) fn posterior(questions: &Questions) -> Result<Posterior<Cpu<f64>>, Error> {
    let settings = TrainSettings { steps: 1, batch: ROWS, ..TrainSettings::default() };
    let trainer = Trainer::new(questions.selection.clone(), device()?, &small(ModelsSettings::default()), &settings)?;
    Ok(trainer.run(&mut Silent)?.posterior)
}

/// Files of each kind that a run keeps, with their names; `dir` is where they are written on the way.
pub fn checkpoints(dir: &Path) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    let questions = Questions::get().ok_or("no questions")?;
    let network = WordNetSettings { hidden: 2, blocks: 1, ..WordNetSettings::default() };
    let words = AutoregressiveSettings { network, ..AutoregressiveSettings::default() };
    let spline = FlowKind::Spline { layers: 1, blocks: 1, hidden: 1 };
    let affine = FlowKind::Affine { layers: 2, blocks: 1, hidden: 1 };
    let modular = FamilySettings { flow: affine, structure: Structure::Blocks, ..FamilySettings::default() };
    let joint = FamilySettings { structure: Structure::Joint, ..small(ModelsSettings::default()) };
    let selection: Arc<dyn Problem> = questions.selection.clone();
    let runs: [(&str, &Arc<dyn Problem>, FamilySettings); 6] = [
        ("surrogate", &selection, small(ModelsSettings::Surrogate(SurrogateSettings::default()))),
        ("categorical", &selection, small(ModelsSettings::Categorical(CategoricalSettings::default()))),
        ("words", &selection, small(ModelsSettings::Autoregressive(words))),
        ("spline", &selection, FamilySettings { flow: spline, ..FamilySettings::default() }),
        ("modular", &(questions.linear.clone() as Arc<dyn Problem>), modular),
        ("joint", &(questions.linear.clone() as Arc<dyn Problem>), joint),
    ];
    let path = dir.join("file.safetensors");
    let mut found = Vec::new();
    for (name, problem, family) in runs {
        let checkpoint = Some(CheckpointSettings { path: path.clone(), every: 1.0 });
        let settings = TrainSettings { steps: 2, batch: ROWS, checkpoint, ..TrainSettings::default() };
        let mut trainer = Trainer::new(Arc::clone(problem), device()?, &family, &settings)?;
        // Made by the first step, where it takes long.
        trainer.step()?;
        trainer.save()?;
        found.push((name, without(&path, std::fs::read(&path)?)));
    }
    posterior(questions)?.save(&path)?;
    found.push(("posterior", std::fs::read(&path)?));
    let nonlinear = questions.nonlinear()?;
    nonlinear.blocks().ok_or("no blocks")?.log_evidence_estimate(0, 0b110);
    save_preparation(&path, &*nonlinear)?;
    found.push(("preparation", std::fs::read(&path)?));
    for (name, problem, how) in
        [("particles", selection, true), ("block-particles", questions.linear.clone() as Arc<dyn Problem>, false)]
    {
        let (content, state) = particles(&*problem, how);
        vti::store::write(&path, &content, &state)?;
        found.push((name, std::fs::read(&path)?));
    }
    Ok(found)
}

/// A checkpoint that does not say where it was written.
fn without(path: &Path, mut bytes: Vec<u8>) -> Vec<u8> {
    let text = path.display().to_string();
    let place = bytes.windows(text.len()).position(|part| part == text.as_bytes());
    if let Some(place) = place {
        bytes[place..place + text.len()].fill(b'-');
    }
    with_sum(&bytes)
}

/// Two particles of the largest model, or runs of two blocks.
fn particles(problem: &dyn Problem, of_models: bool) -> (serde_json::Value, State) {
    let space = problem.space();
    let shape = json!({ "arities": space.arities(), "parameters": problem.parameter_names() });
    let mut state = State::default();
    if !of_models {
        state.put("log_evidences", &[-1.0, -2.0, -3.0]);
        state.put("calls", &[10.0; 3]);
        return (json!({ "shape": shape, "how": null, "blocks": [[0, 0, 1], [1, 4, 2]] }), state);
    }
    let (word, dim) = (vec![1.0; space.arities().len()], space.max_dim());
    state.put("log_evidence", &[-1.0, 0.1]);
    state.put("parts", &vec![0.5; 2 * space.feature_count()]);
    state.put("models", &word);
    state.put("probabilities", &[1.0, 0.0]);
    state.put("words", &[&word[..], &word].concat());
    state.put("dims", &[dim as f64; 2]);
    state.put("theta", &vec![0.25; 2 * dim]);
    state.put("log_target", &[-1.0; 2]);
    state.put("weights", &[0.5; 2]);
    state.put("ends", &[1.0, 2.0]);
    state.put("runs", &[0.5; 2]);
    let how = json!({ "round": 0, "smc": SmcSettings::default(), "is_repeated": false });
    (json!({ "shape": shape, "how": how, "blocks": [] }), state)
}
