//! Same seed, same bits; interrupted or not; and files that are refused.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use vti::device::Cpu;
use vti::family::{FamilySettings, FlowKind};
use vti::models::ModelsSettings;
use vti::optimise::{OptimiserSettings, SgdSettings};
use vti::posterior::{LoadError, Posterior};
use vti::problem::{self, BatchError, DensityBatch, DensityError, Problem};
use vti::space::{ModelSpace, Subsets};
use vti::store::{self, StoreError};
use vti::train::{
    CheckpointSettings, InformationSettings, PlateauSettings, Silent, StepReport, Stop, TrainError, TrainSettings,
    Trainer,
};
use vti::workers::Workers;

use crate::{WithNorms, bits, directory, families, normal, settings};

fn run(family: &FamilySettings, settings: &TrainSettings, threads: usize) -> Vec<u64> {
    let problem = normal(0.5);
    let device = Cpu::<f32>::new(threads).unwrap();
    let fit = Trainer::new(problem.clone(), device.clone(), family, settings).unwrap().run(&mut Silent).unwrap();
    bits(&fit.posterior)
}

#[test]
fn runs_repeat_bit_for_bit_on_any_number_of_threads() {
    for family in families() {
        let one = run(&family, &settings(), 1);
        assert_eq!(one, run(&family, &settings(), 1));
        assert_eq!(one, run(&family, &settings(), 2));
        assert_ne!(one, run(&family, &TrainSettings { seed: 2, ..settings() }, 1), "seeds matter");
        // Enough rows for several lanes whose gradients are summed.
        let large =
            TrainSettings { batch: 1100, steps: 6, information: InformationSettings::Unlimited {}, ..settings() };
        assert_eq!(run(&family, &large, 1), run(&family, &large, 2));
    }
}

#[test]
fn tables_of_many_models_do_not_depend_on_threads() {
    let space = || Subsets::new(15).unwrap();
    let run = |models: &ModelsSettings, threads: usize| {
        let problem = Arc::new(problem::from_fn(space(), |model, theta, gradient| {
            gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = -t);
            f64::from(model[3]) - 0.5 * theta.iter().map(|t| t * t).sum::<f64>()
        }));
        let flow = FlowKind::Diagonal { hidden: vec![] };
        let family = FamilySettings { models: models.clone(), flow, ..FamilySettings::default() };
        let settings =
            TrainSettings { steps: 5, batch: 600, information: InformationSettings::Unlimited {}, ..settings() };
        let device = Cpu::<f32>::new(threads).unwrap();
        let fit = Trainer::new(problem.clone(), device.clone(), &family, &settings).unwrap().run(&mut Silent).unwrap();
        bits(&fit.posterior)
    };
    for family in &families()[..4] {
        if !matches!(family.models, ModelsSettings::Autoregressive(_)) {
            assert_eq!(run(&family.models, 1), run(&family.models, 2));
        }
    }
}

#[test]
fn a_plateau_is_found_at_the_same_step_after_an_interruption() {
    let (problem, directory, device) = (normal(0.5), directory("plateau"), Cpu::<f32>::single());
    let path = directory.join("run.safetensors");
    let settings = TrainSettings {
        checkpoint: Some(CheckpointSettings { path: path.clone(), every: 1e9 }),
        plateau: Some(PlateauSettings { window: 20, tolerance: 10.0 }),
        information: InformationSettings::Unlimited {},
        ..settings()
    };
    let whole =
        Trainer::new(problem.clone(), device.clone(), &families()[3], &settings).unwrap().run(&mut Silent).unwrap();
    assert!(matches!(whole.stop, Stop::Plateau { .. }) && whole.steps == 40, "{} at {}", whole.stop, whole.steps);
    let trainer = Trainer::new(problem.clone(), device.clone(), &families()[3], &settings).unwrap();
    trainer.run(&mut interrupt_after(27)).unwrap();
    let fit = Trainer::resume(problem.clone(), device.clone(), &path).unwrap().run(&mut Silent).unwrap();
    assert_eq!((fit.stop, fit.steps), (whole.stop, whole.steps));
    std::fs::remove_dir_all(directory).unwrap();
}

/// Stops after so many steps, as an interrupted run would.
fn interrupt_after(steps: u64) -> impl FnMut(&StepReport) -> ControlFlow<()> {
    move |report| if report.step >= steps { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

#[test]
fn an_interrupted_run_ends_where_an_uninterrupted_one_does() {
    let (problem, directory) = (normal(0.5), directory("resume"));
    for (index, family) in families().iter().enumerate() {
        let path = directory.join(format!("{index}.safetensors"));
        let checkpoint = Some(CheckpointSettings { path: path.clone(), every: 1e9 });
        let settings = TrainSettings { checkpoint, plateau: Some(Default::default()), ..settings() };
        let whole = run(family, &TrainSettings { checkpoint: None, ..settings.clone() }, 2);
        let device = Cpu::<f32>::new(1).unwrap();
        let trainer = Trainer::new(problem.clone(), device.clone(), family, &settings).unwrap();
        let fit = trainer.run(&mut interrupt_after(17)).unwrap();
        assert_eq!((fit.stop, fit.steps), (Stop::Observer, 17));
        // Again, on other threads.
        let device = Cpu::<f32>::new(2).unwrap();
        let trainer = Trainer::resume(problem.clone(), device.clone(), &path).unwrap();
        assert_eq!(trainer.steps(), 17);
        trainer.run(&mut interrupt_after(41)).unwrap();
        let fit = Trainer::resume(problem.clone(), device.clone(), &path).unwrap().run(&mut Silent).unwrap();
        assert_eq!((fit.stop, fit.steps), (Stop::Steps { steps: 60 }, 60));
        assert_eq!(bits(&fit.posterior), whole, "{:?}", family.models);
    }
    std::fs::remove_dir_all(directory).unwrap();
}

/// [`normal`], which fails at the so-manieth batch and ever after, as long as it is broken.
struct Breaking {
    inner: Arc<dyn Problem>,
    batches: AtomicUsize,
    last: usize,
    is_broken: AtomicBool,
}

impl Problem for Breaking {
    fn space(&self) -> &dyn ModelSpace {
        self.inner.space()
    }

    fn log_density(&self, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        if self.is_broken.load(Ordering::Relaxed) && self.batches.load(Ordering::Relaxed) > self.last {
            return Err(DensityError::Fatal { reason: "broken".into() });
        }
        self.inner.log_density(model, theta, gradient)
    }

    fn log_density_batch(&self, batch: DensityBatch<'_>, workers: &Workers) -> Result<(), BatchError> {
        let is_over = self.batches.fetch_add(1, Ordering::Relaxed) >= self.last;
        if self.is_broken.load(Ordering::Relaxed) && is_over {
            return Err(BatchError { row: 0, error: DensityError::Fatal { reason: "broken".into() } });
        }
        self.inner.log_density_batch(batch, workers)
    }
}

#[test]
fn a_run_whose_density_broke_goes_on_once_it_is_mended() {
    let (directory, device) = (directory("broken"), Cpu::<f32>::single());
    for (index, family) in families().iter().enumerate() {
        let path = directory.join(format!("{index}.safetensors"));
        let checkpoint = Some(CheckpointSettings { path: path.clone(), every: 1e9 });
        let settings = TrainSettings { checkpoint, ..settings() };
        let whole = run(family, &TrainSettings { checkpoint: None, ..settings.clone() }, 2);
        let (batches, is_broken) = (AtomicUsize::new(0), AtomicBool::new(true));
        let problem = Arc::new(Breaking { inner: normal(0.5), batches, last: 23, is_broken });
        let broken = Trainer::new(problem.clone(), device.clone(), family, &settings).unwrap().run(&mut Silent);
        let Err(error) = broken else { panic!("the density failed, the run did not") };
        assert!(error.to_string().contains("broken"), "{error}");
        problem.is_broken.store(false, Ordering::Relaxed);
        let trainer = Trainer::resume(problem.clone(), device.clone(), &path).unwrap();
        assert!(trainer.steps() > 0 && trainer.steps() <= 23, "{}", trainer.steps());
        assert_eq!(bits(&trainer.run(&mut Silent).unwrap().posterior), whole, "{:?}", family.models);
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn norms_of_gradients_are_reported_as_without_an_interruption() {
    let (problem, device, directory) = (normal(0.5), Cpu::<f32>::single(), directory("norms"));
    let path = directory.join("run.safetensors");
    for optimiser in [OptimiserSettings::default(), OptimiserSettings::Sgd(SgdSettings::default())] {
        // A time limit lets the first steps be tried; what they saw is forgotten.
        let settings = TrainSettings {
            optimiser,
            time_limit: Some(1e6),
            checkpoint: Some(CheckpointSettings { path: path.clone(), every: 1e9 }),
            ..settings()
        };
        let norms = |trainer: Trainer<Cpu<f32>>, last: u64| {
            let mut norms = Vec::new();
            let mut observer = WithNorms(|report: &StepReport| {
                norms.push(report.gradient_norm.unwrap());
                interrupt_after(last)(report)
            });
            trainer.run(&mut observer).unwrap();
            norms
        };
        let new = || Trainer::new(problem.clone(), device.clone(), &families()[0], &settings).unwrap();
        let whole = norms(new(), 20);
        assert!(whole.len() == 20 && whole.iter().all(|norm| norm.is_finite()), "{whole:?}");
        let mut parts = norms(new(), 7);
        parts.extend(norms(Trainer::resume(problem.clone(), device.clone(), &path).unwrap(), 20));
        assert_eq!(parts, whole);
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn posteriors_are_saved_and_loaded_bit_for_bit() {
    let (problem, directory) = (normal(0.5), directory("posterior"));
    let device = Cpu::<f64>::new(2).unwrap();
    for (index, family) in families().iter().enumerate() {
        let path = directory.join(format!("{index}.safetensors"));
        let fit = Trainer::new(problem.clone(), device.clone(), family, &settings()).unwrap().run(&mut Silent).unwrap();
        fit.posterior.save(&path).unwrap();
        let loaded = Posterior::load(problem.clone(), device.clone(), &path).unwrap();
        assert_eq!(bits(&loaded), bits(&fit.posterior), "{:?}", family.models);
        let resumed = Trainer::resume(problem.clone(), device.clone(), &path).unwrap_err().to_string();
        assert!(resumed.contains("finished posterior"), "{resumed}");
    }
    std::fs::remove_dir_all(directory).unwrap();
}

/// A checkpoint with one before it.
fn checkpoint(path: &Path) {
    let (problem, device) = (normal(0.5), Cpu::<f32>::single());
    let settings =
        TrainSettings { checkpoint: Some(CheckpointSettings { path: path.into(), every: 1e9 }), ..settings() };
    Trainer::new(problem.clone(), device.clone(), &families()[0], &settings)
        .unwrap()
        .run(&mut interrupt_after(5))
        .unwrap();
    Trainer::resume(problem.clone(), device.clone(), path).unwrap().run(&mut interrupt_after(9)).unwrap();
}

fn load(path: &Path) -> Result<u64, LoadError> {
    let (problem, device) = (normal(0.5), Cpu::<f32>::single());
    match Trainer::resume(problem.clone(), device.clone(), path) {
        Ok(trainer) => Ok(trainer.steps()),
        Err(TrainError::Load(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn files_that_are_not_what_they_should_be_are_refused_each_with_its_own_message() {
    let directory = directory("damage");
    let path = directory.join("run.safetensors");
    checkpoint(&path);
    assert_eq!(load(&path).unwrap(), 9);
    let previous = store::previous(&path);
    assert_eq!(load(&previous).unwrap(), 5, "the one before is kept");
    let good = std::fs::read(&path).unwrap();
    let attempt = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        load(&path).unwrap_err()
    };
    // Cut short, anywhere.
    for keep in [0, 5, 8, 200, good.len() / 2, good.len() - 1] {
        let error = attempt(&good[..keep]);
        assert!(matches!(error, LoadError::Store(StoreError::Truncated { .. })), "{keep}: {error:?}");
        assert!(error.to_string().contains("cut short") && error.to_string().contains("run.previous.safetensors"));
    }
    // A bit flipped, anywhere.
    let mut damaged = 0;
    for place in (0..good.len()).step_by(good.len() / 300 + 1).chain(8..400) {
        let mut bytes = good.clone();
        bytes[place] ^= 1 << (place % 8);
        let error = attempt(&bytes);
        damaged += usize::from(matches!(error, LoadError::Store(StoreError::Damaged { .. })));
    }
    assert!(damaged > 500, "{damaged}");
    let mut bytes = good.clone();
    *bytes.last_mut().unwrap() ^= 1;
    assert!(attempt(&bytes).to_string().contains("damaged"));
    // Something else.
    let foreign = |bytes: &[u8]| matches!(attempt(bytes), LoadError::Store(StoreError::Foreign { .. }));
    assert!(foreign(b"model,probability\n1,0.5\n"));
    let other = safetensors_of_another_program();
    assert!(foreign(&other));
    // Of another version of the format.
    let old = String::from_utf8_lossy(&good).find("vti_format").map(|_| with_version(&good, "0")).unwrap();
    let error = attempt(&old);
    assert!(matches!(&error, LoadError::Store(StoreError::Version { found, .. }) if found == "0"), "{error:?}");
    // After all this the previous one is still good.
    assert_eq!(load(&previous).unwrap(), 5);
    assert!(matches!(load(&directory.join("none")), Err(LoadError::Store(StoreError::Io { .. }))));
    std::fs::remove_dir_all(directory).unwrap();
}

fn safetensors_of_another_program() -> Vec<u8> {
    let header = br#"{"weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header);
    bytes.extend_from_slice(&1f32.to_le_bytes());
    bytes
}

/// The same file with another version, and a checksum that fits.
fn with_version(good: &[u8], version: &str) -> Vec<u8> {
    let find = |bytes: &[u8], what: &str| {
        bytes.windows(what.len()).position(|part| part == what.as_bytes()).map(|place| place + what.len()).unwrap()
    };
    let mut bytes = good.to_vec();
    let place = find(&bytes, "\"vti_format\":\"");
    bytes[place..place + version.len()].copy_from_slice(version.as_bytes());
    let place = find(&bytes, "\"vti_crc32\":\"");
    bytes[place..place + 8].copy_from_slice(b"00000000");
    let sum = crc32(&bytes);
    bytes[place..place + 8].copy_from_slice(format!("{sum:08x}").as_bytes());
    bytes
}

/// The checksum bit by bit (IEEE 802.3).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 })
    })
}

#[test]
fn checkpoints_of_other_problems_and_precisions_are_refused() {
    let directory = directory("foreign");
    let path = directory.join("run.safetensors");
    checkpoint(&path);
    let (problem, device) = (normal(0.6), Cpu::<f32>::single());
    let error = Trainer::resume(problem.clone(), device.clone(), &path).unwrap_err();
    assert!(matches!(error, TrainError::Load(LoadError::OtherProblem { .. })), "{error}");
    let (problem, device) = (normal(0.5), Cpu::<f64>::single());
    let error = Trainer::resume(problem.clone(), device.clone(), &path).unwrap_err().to_string();
    assert!(error.contains("saved in f32, this device computes in f64"), "{error}");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_and_the_last_one_stays() {
    let directory = directory("readonly");
    let path = directory.join("missing").join("run.safetensors");
    let (problem, device) = (normal(0.5), Cpu::<f32>::single());
    let settings =
        TrainSettings { checkpoint: Some(CheckpointSettings { path: path.clone(), every: 1e-9 }), ..settings() };
    let error =
        Trainer::new(problem.clone(), device.clone(), &families()[0], &settings).unwrap().run(&mut Silent).unwrap_err();
    assert!(matches!(error, TrainError::Load(LoadError::Store(StoreError::Io { .. }))), "{error}");
    // A device that is always full, where there is one.
    if Path::new("/dev/full").exists() {
        let path = directory.join("run.safetensors");
        checkpoint(&path);
        let partial = directory.join("run.safetensors.partial");
        std::os::unix::fs::symlink("/dev/full", &partial).unwrap();
        let error =
            Trainer::resume(problem.clone(), device.clone(), &path).unwrap().run(&mut interrupt_after(12)).unwrap_err();
        assert!(error.to_string().contains("run.safetensors"), "{error}");
        assert_eq!(load(&path).unwrap(), 9);
        assert!(!partial.exists());
    }
    std::fs::remove_dir_all(directory).unwrap();
}
