//! A configuration with its data: everything a posterior needs to be made or loaded.

use std::sync::Arc;

use anyhow::Result;
use vti::device::Device;
use vti::posterior::Posterior;
use vti::problem::Problem;
use vti::train::load_preparation;
use vti::workers::Workers;

use crate::config::Config;
use crate::data::is_path;
use crate::failure::Usage;
use crate::question::Question;
use crate::rundir::RunDir;
use crate::signals::Signals;

/// A question with its settings.
#[derive(Debug)]
pub(crate) struct Session<Q> {
    pub(crate) config: Config,
    pub(crate) question: Q,
}

impl<Q: Question> Session<Q> {
    /// Reads the data and sets the question up.
    pub(crate) fn new(mut config: Config) -> Result<Self> {
        check_device(&config.machine.device)?;
        config.problem.resolve();
        let question = Q::load(&config)?;
        question.write_out(&mut config);
        let source = &mut config.source;
        if source.fingerprint.as_ref().is_some_and(|expected| expected != question.fingerprint()) {
            let hint = "hint: put the data back, or start a new run";
            return Err(Usage(format!("{}: the data have changed since the run began\n{hint}", source.data)).into());
        }
        source.fingerprint = Some(question.fingerprint().into());
        if source.table.is_none() {
            source.data = lasting(&source.data);
        }
        if let Some(Some(truth)) = config.problem.truth_mut() {
            *truth = lasting(truth);
        }
        Ok(Self { config, question })
    }

    /// With a question that a program has asked itself.
    pub(crate) fn of(config: Config, question: Q) -> Result<Self> {
        check_device(&config.machine.device)?;
        Ok(Self { config, question })
    }

    pub(crate) fn problem(&self) -> Arc<dyn Problem> {
        self.question.problem()
    }

    /// Estimates end at once when somebody wants the program to stop.
    pub(crate) fn heed(&self, signals: &Signals) {
        if let Some(blocks) = self.problem().blocks() {
            blocks.heed(signals.flag());
        }
    }

    /// The host's threads.
    pub(crate) fn workers(&self) -> Result<Workers> {
        Ok(Workers::new(self.config.threads())?)
    }

    /// Takes what a preparation has found before; what cannot be read is found anew.
    pub(crate) fn remember(&self, dir: &RunDir) {
        let _ = load_preparation(&dir.preparation(), &*self.problem());
    }

    /// What a finished run learned, or an interrupted one so far.
    pub(crate) fn posterior<D: Device>(&self, dir: &RunDir, device: &D) -> Result<Posterior<D>> {
        let files = [dir.posterior(), dir.checkpoint(None), dir.checkpoint(Some(0))];
        let Some(file) = files.iter().find(|file| file.exists()) else {
            let hint = "hint: nothing was saved yet; `--resume` starts the run again";
            return Err(
                Usage(format!("{}: there is no posterior and no checkpoint\n{hint}", dir.path().display())).into()
            );
        };
        self.remember(dir);
        Ok(Posterior::load(self.problem(), device.clone(), file)?)
    }
}

/// A path that means the same from anywhere.
fn lasting(data: &str) -> String {
    if !is_path(data) {
        return data.into();
    }
    std::path::absolute(data).map_or_else(|_| data.into(), |path| path.to_string_lossy().into_owned())
}

fn check_device(device: &str) -> Result<()> {
    if device == "cpu" {
        return Ok(());
    }
    let is_cuda = device == "cuda" || device.starts_with("cuda:");
    Err(Usage(if is_cuda {
        "--device cuda: this build has no CUDA device\nhint: --device cpu".into()
    } else {
        format!("--device {device}: there is no such device\nhint: `vti devices` lists what there is")
    })
    .into())
}
