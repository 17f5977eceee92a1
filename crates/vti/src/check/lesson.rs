//! What a second opinion found is learned, and checked again.

use std::ops::ControlFlow;

use super::importance::{Check, CheckSettings, check_after};
use super::particles::Particles;
use super::verdict::VerdictKind;
use super::{CheckError, verdict};
use crate::device::Device;
use crate::posterior::Posterior;
use crate::train::{Lesson, StepReport, learn};

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// So many of so many parts of a look beyond q are done.
    Looking {
        /// Parts that are done.
        done: usize,
        /// Of so many, to which more may be added.
        all: usize,
    },
    /// q learns what was found: so many of so many steps are done.
    Learning {
        /// Steps that are done.
        done: u64,
        /// Of so many.
        all: u64,
    },
}

/// Checks q, from earlier particles on ([`check_onwards`](super::check_onwards)); where a second opinion found what q lacks, q learns
/// it ([`learn`]) and is checked again. A lesson that made the verdict worse is forgotten. Also returns how often q was taught. `watch`
/// is told what is being done, and says whether to go on.
pub fn check_and_learn<D: Device>(
    mut posterior: Posterior<D>,
    settings: &CheckSettings,
    earlier: Option<&Particles>,
    watch: &mut dyn FnMut(Stage) -> bool,
) -> Result<(Posterior<D>, Check, usize), CheckError> {
    let mut check = look(&posterior, settings, earlier, 0, watch)?;
    let mut lessons = 0;
    let all = settings.lesson.steps_of(posterior.family());
    while let Some(lesson) = lesson(&check).filter(|_| lessons < settings.lesson.rounds) {
        if !watch(Stage::Learning { done: 0, all }) {
            break;
        }
        let before = posterior.family().state()?;
        let mut observer = |report: &StepReport| match watch(Stage::Learning { done: report.step, all }) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let learned = learn(posterior, &lesson, &settings.lesson, &mut observer);
        posterior = learned.map_err(|error| failed(&error))?;
        match look(&posterior, settings, check.particles().as_ref(), lessons as u32 + 1, watch) {
            Ok(again) if rank(&again) <= rank(&check) => {
                check = again;
                check.verdict.text += "; q has learned what was found beyond it";
            }
            _ => {
                posterior = posterior.restored(before).map_err(|error| failed(&error))?;
                break;
            }
        }
        lessons += 1;
    }
    Ok((posterior, check, lessons))
}

/// One check.
fn look<D: Device>(
    posterior: &Posterior<D>,
    settings: &CheckSettings,
    earlier: Option<&Particles>,
    lessons: u32,
    watch: &mut dyn FnMut(Stage) -> bool,
) -> Result<Check, CheckError> {
    check_after(posterior, settings, earlier, lessons, &mut |done, all| watch(Stage::Looking { done, all }))
}

fn failed(error: &dyn std::error::Error) -> CheckError {
    CheckError::Lesson { reason: error.to_string() }
}

/// What q should learn, where it is far from what was found without it.
fn lesson(check: &Check) -> Option<Lesson<'_>> {
    let far = verdict::NEGLIGIBLE_DISTANCE;
    match (&check.opinion, &check.blocks) {
        // Particles that have lost something teach nothing.
        (Some(_), _) if check.verdict.kind == VerdictKind::DoNotTrust && !check.prefers_opinion => None,
        (Some(opinion), _) => {
            let needs = check.prefers_opinion || !opinion.is_covered() || opinion.distance() > far;
            needs.then(|| opinion.lesson())
        }
        (None, Some(blocks)) => {
            (blocks.is_seconded && blocks.distance() > far).then_some(Lesson::Blocks(&blocks.scores))
        }
        (None, None) => None,
    }
}

/// How good a verdict is, the best first.
fn rank(check: &Check) -> u8 {
    match check.verdict.kind {
        VerdictKind::Trust => 0,
        VerdictKind::Corrected => 1,
        VerdictKind::DoNotTrust => 2,
    }
}
