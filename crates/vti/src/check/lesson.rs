//! What a second opinion found is learned, and checked again.

use std::cmp::Ordering;
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

/// Nats by which a lesson raises the bound if another may help, and by which it may lower the bound of any q.
const MIN_GAIN: f64 = 0.1;

/// Nats by which a lesson may lower the bound at most.
const MAX_LOSS: f64 = 3.0;

/// Checks q, from earlier particles on ([`check_onwards`](super::check_onwards)); where a second opinion found what q lacks, q learns
/// it ([`learn`]) and is checked again, and so on while lessons help. One that made the verdict worse is forgotten, and so is one that
/// left it as it was but lowered the bound by more than what q lacked had cost it. Also returns how often q was taught. `watch` is told
/// what is being done, and says whether to go on.
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
        let again = look(&posterior, settings, check.particles().as_ref(), lessons as u32 + 1, watch);
        let is_worse = |again: &Check| match rank(again).cmp(&rank(&check)) {
            Ordering::Less => false,
            Ordering::Equal => again.elbo.value < check.elbo.value - max_loss(&check),
            Ordering::Greater => true,
        };
        let Some(mut again) = again.ok().filter(|again| !is_worse(again)) else {
            posterior = posterior.restored(before).map_err(|error| failed(&error))?;
            break;
        };
        again.verdict.text += "; q has learned what was found beyond it";
        lessons += 1;
        let has_helped = again.elbo.value > check.elbo.value + MIN_GAIN;
        check = again;
        if !has_helped {
            break;
        }
    }
    Ok((posterior, check, lessons))
}

/// Nats by which a lesson may lower the bound where it leaves the verdict as good as it was: as many as what q lacked has cost it. One
/// that has all of the posterior but a share u exactly is −ln(1 − u) away from it; one that has more of it fits each part less closely,
/// and if that costs more, it has become the worse approximation.
fn max_loss(before: &Check) -> f64 {
    let lacked = before.opinion.as_ref().map_or(1.0, |opinion| opinion.uncovered);
    (-(-lacked.min(1.0)).ln_1p()).clamp(MIN_GAIN, MAX_LOSS)
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
            let needs = check.prefers_opinion || !opinion.is_covered() || opinion.clear_distance() > far;
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
