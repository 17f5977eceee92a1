//! An experiment that is going on: what is finished, and what is said of it.

use anyhow::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::peers::{Asked, Lanes, ask_all};
use super::rows::{Answer, Finished, Scored};
use crate::results::Results;
use crate::session::Session;

/// Which run of an experiment.
pub(crate) trait Case: Copy + PartialEq + Send + Sync + Serialize + DeserializeOwned {
    /// For people.
    fn name(&self) -> String;
}

/// Finished runs, and who hears of them.
pub(crate) struct Journal<'a, C> {
    pub(crate) session: Session<'a>,
    results: Results<Finished<C>>,
    cases: Vec<C>,
}

impl<'a, C: Case> Journal<'a, C> {
    /// Of these cases, as far as they are not finished.
    pub(crate) fn new(
        results: Results<Finished<C>>,
        cases: &[C],
        threads: usize,
        talk: &'a dyn Fn(&str),
    ) -> Result<Self> {
        let before = cases.iter().filter(|case| results.has(|fit| fit.case == **case)).count();
        Ok(Self { session: Session::new(threads, cases.len(), before, talk)?, results, cases: cases.to_vec() })
    }

    /// What is finished, in the order of the cases: peers finish in one of their own.
    pub(crate) fn close(mut self) -> (Session<'a>, Results<Finished<C>>) {
        let place = |fit: &Finished<C>| self.cases.iter().position(|case| *case == fit.case).unwrap_or(usize::MAX);
        self.results.finished.sort_by_key(place);
        (self.session, self.results)
    }

    pub(crate) fn is_done(&self, case: &C) -> bool {
        self.results.has(|fit| fit.case == *case)
    }

    /// Writes a finished run down.
    pub(crate) fn add(&mut self, fit: Finished<C>) -> Result<()> {
        let scores = fit.answers.iter().flat_map(|answer| &answer.scores);
        let best = scores.filter_map(|scores| scores.f1_mean).fold(0.0, f64::max);
        let said = format!("{}: {:.1} s, F1 {best:.2}", fit.case.name(), fit.seconds);
        self.results.add(fit)?;
        self.session.finished(&said);
        Ok(())
    }

    /// Has the peers do what they have not done yet, and scores it.
    pub(crate) fn ask(
        &mut self,
        lanes: Lanes,
        mut jobs: Vec<Asked<'_, C>>,
        score: impl Fn(C, &[Answer]) -> Result<Vec<Scored>>,
    ) -> Result<()> {
        jobs.retain(|asked| !self.is_done(&asked.case));
        ask_all(lanes, &jobs, |case, told| match told {
            Ok(told) => {
                let answers = score(case, &told.answers)?;
                let (seconds, processor_seconds) = (told.seconds, Some(told.processor_seconds));
                self.add(Finished { case, by: told.by, seconds, processor_seconds, khat: None, answers })
            }
            // The next may be sound; this one is tried again when the command is.
            Err(error) => {
                self.session.say(&format!("{}: {error:#}", case.name()));
                Ok(())
            }
        })
    }
}
