//! How training and checks go: a line on a terminal, sparse lines elsewhere, and `progress.jsonl` of training.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use vti::problem::Problem;
use vti::search::SearchProgress;
use vti::space::ModelSpace;
use vti::train::{Observer, StepReport, save_preparation};
use vti_report::Trace;

use crate::args::AS_MANY_AS_FIT;
use crate::budget::Budget;
use crate::phase::PhaseFile;
use crate::print;
use crate::rundir::{self, RunDir, unwritable};
use crate::signals::Signals;
use crate::watch::Told;

/// A line of `progress.jsonl`: means over the steps since the line before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) step: u64,
    pub(crate) seconds: f64,
    pub(crate) elbo: Option<f64>,
    pub(crate) entropy: f64,
    pub(crate) gradient_norm: Option<f64>,
    /// Draws that were not finite.
    pub(crate) dropped: usize,
    /// Which of several runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replicate: Option<usize>,
}

/// Lines in the file of a whole run.
const LINES: u64 = 200;

/// Weight of the last step in the bound that is shown.
const SMOOTH: f64 = 0.2;

/// Lines of talk where there is no terminal.
const TALKS: u64 = 5;

/// The shortest time between two pictures of a terminal's line.
pub(crate) const REDRAW: Duration = Duration::from_millis(100);

/// Time between two files of what was prepared.
const KEEP: Duration = Duration::from_secs(20);

/// The shortest time between two lines about a check where there is no terminal.
pub(crate) const TALK: Duration = Duration::from_secs(20);

/// Shows steps, keeps their trace, and stops the run when a signal says so.
pub(crate) struct Progress<'a> {
    problem: &'a dyn Problem,
    signals: &'a Signals,
    show: Show,
    steps: u64,
    time_limit: Option<f64>,
    replicate: Option<usize>,
    file: File,
    path: PathBuf,
    /// What is said where a step takes too long to stop.
    in_midst: Arc<str>,
    /// Where what was prepared is kept.
    preparation: PathBuf,
    /// Why the file could not be written any more.
    broken: Option<anyhow::Error>,
    sums: Sums,
    smooth: Option<f64>,
    /// When this process began to train, and at which step.
    begin: Option<(Instant, u64)>,
    drawn: Option<Instant>,
    leading: String,
    /// Step and seconds of the last report.
    last: (u64, f64),
    /// When the last line was written, and when the last was shown.
    recorded: f64,
    talked: f64,
    /// Since when it is prepared, and how much of that was told.
    preparing: Option<Instant>,
    prepared: u64,
    /// When what was prepared was saved.
    kept: Instant,
    phase: PhaseFile,
}

/// Where it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    Nothing,
    Lines,
    Bar,
}

impl Show {
    pub(crate) fn new(quiet: bool) -> Self {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Self::Nothing,
            (false, true) => Self::Bar,
            (false, false) => Self::Lines,
        }
    }
}

/// Shows how far chains over models have come.
pub(crate) struct Searching<'a> {
    show: Show,
    last: Instant,
    signals: &'a Signals,
    budget: Budget,
    file: PhaseFile,
}

impl<'a> Searching<'a> {
    pub(crate) fn new(quiet: bool, signals: &'a Signals, budget: Budget, dir: &RunDir) -> Self {
        Self { show: Show::new(quiet), last: Instant::now(), signals, budget, file: PhaseFile::new(dir.phase()) }
    }

    /// Whether to go on.
    pub(crate) fn show(&mut self, progress: &SearchProgress) -> bool {
        let text = || {
            let agreement = progress.diagnosis.map_or_else(
                || "warming up".into(),
                |found| format!("largest R̂ {:.3}, smallest effective size {:.0}", found.rhat, found.effective),
            );
            let SearchProgress { iteration, asked, .. } = progress;
            if *iteration == 0 {
                return format!("climbing to a start for chains over models: {asked} evidences");
            }
            format!("chains over models: iteration {iteration}, {asked} evidences, {agreement}")
        };
        self.say(text);
        self.goes_on(progress)
    }

    /// So many steps of so many are done in which q(m) learns what chains met; whether to go on.
    pub(crate) fn learning(&mut self, done: u64, all: u64) -> bool {
        self.say(|| format!("learning q(m) from what chains over models met: step {done} of {all}"));
        !self.signals.stopped() && self.budget.end_of_check().is_none_or(|end| Instant::now() < end)
    }

    fn say(&mut self, text: impl Fn() -> String) {
        self.file.tell(&text);
        self.signals.tell(|| Told { text: text(), ..Told::default() });
        let since = self.last.elapsed();
        match self.show {
            Show::Bar if since >= REDRAW => print::redraw(&text()),
            Show::Lines if since >= TALK => print::talk(&text()),
            _ => return,
        }
        self.last = Instant::now();
    }

    fn goes_on(&self, progress: &SearchProgress) -> bool {
        let end = if progress.iteration == 0 { self.budget.end_of_climb() } else { self.budget.end_of_check() };
        !self.signals.stopped() && end.is_none_or(|end| Instant::now() < end)
    }

    /// Clears the terminal's line.
    pub(crate) fn finish(self) {
        if self.show == Show::Bar {
            print::redraw("");
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    steps: f64,
    elbo: f64,
    entropy: f64,
    dropped: usize,
}

/// What is to be observed.
pub(crate) struct Watched {
    pub(crate) steps: u64,
    pub(crate) time_limit: Option<f64>,
    pub(crate) replicate: Option<usize>,
    pub(crate) quiet: bool,
}

impl<'a> Progress<'a> {
    /// Appends to the file; lines after `done` steps are of a run that was lost.
    pub(crate) fn new(
        dir: &RunDir,
        done: u64,
        problem: &'a dyn Problem,
        signals: &'a Signals,
        watched: &Watched,
    ) -> Result<Self> {
        let path = dir.progress();
        forget(&path, done, watched.replicate)?;
        let file =
            OpenOptions::new().create(true).append(true).open(&path).map_err(|error| unwritable(&path, &error))?;
        let show = Show::new(watched.quiet);
        let in_midst = Arc::from(interrupted(dir));
        signals.end_in_midst(&in_midst);
        Ok(Self {
            problem,
            signals,
            show,
            steps: watched.steps,
            time_limit: watched.time_limit,
            replicate: watched.replicate,
            file,
            path,
            in_midst,
            preparation: dir.preparation(),
            broken: None,
            sums: Sums::default(),
            smooth: None,
            begin: None,
            drawn: None,
            leading: String::new(),
            last: (done, 0.0),
            recorded: 0.0,
            talked: 0.0,
            preparing: None,
            prepared: 0,
            kept: Instant::now(),
            phase: PhaseFile::new(dir.phase()),
        })
    }

    /// Writes what is left, and clears the terminal's line; says what went wrong with the file.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.signals.heed();
        if self.sums.steps > 0.0 {
            self.record(None);
        }
        if self.show == Show::Bar {
            print::redraw("");
        }
        self.broken.map_or(Ok(()), Err)
    }

    /// Whether nobody wants to stop; whoever does so later may end the program in the midst of what follows.
    fn goes_on(&self) -> ControlFlow<()> {
        if self.signals.stopped() {
            return ControlFlow::Break(());
        }
        self.signals.end_in_midst(&self.in_midst);
        ControlFlow::Continue(())
    }

    fn is_due(&self) -> bool {
        self.show == Show::Bar && self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW)
    }

    /// Writes a line to the file.
    fn record(&mut self, gradient_norm: Option<f64>) {
        let Sums { steps, elbo, entropy, dropped } = std::mem::take(&mut self.sums);
        let finite = |sum: f64| Some(sum / steps).filter(|mean| mean.is_finite());
        let line = Line {
            step: self.last.0,
            seconds: self.last.1,
            elbo: finite(elbo),
            entropy: entropy / steps,
            gradient_norm: gradient_norm.filter(|norm| norm.is_finite()),
            dropped,
            replicate: self.replicate,
        };
        let written = serde_json::to_string(&line)
            .map_err(std::io::Error::other)
            .and_then(|text| self.file.write_all(format!("{text}\n").as_bytes()));
        if let Err(error) = written {
            self.broken.get_or_insert_with(|| unwritable(&self.path, &error));
        }
    }

    /// Whether a step ends one of so many parts of the run, the last of which ended at `before` seconds. A time limit may
    /// allow for a few of the steps only, so time is divided as well.
    fn ends_part(&self, report: &StepReport, parts: u64, before: f64) -> bool {
        let by_time = self.time_limit.is_some_and(|limit| report.seconds - before >= limit / parts as f64);
        by_time || report.step == self.steps || report.step.is_multiple_of(self.steps.div_ceil(parts))
    }

    fn time_left(&self, report: &StepReport) -> f64 {
        let Some((begin, first)) = self.begin.filter(|(_, first)| report.step > *first) else { return f64::NAN };
        let elapsed = begin.elapsed().as_secs_f64();
        let left = elapsed / (report.step - first) as f64 * self.steps.saturating_sub(report.step) as f64;
        self.time_limit.map_or(left, |limit| left.min((limit - elapsed).max(0.0)))
    }

    fn text(&self, report: &StepReport) -> String {
        let run = self.replicate.map_or_else(String::new, |run| format!("run {}  ", run + 1));
        let elbo = self.smooth.unwrap_or(f64::NAN);
        // Where time alone decides, nobody knows the number of steps before.
        let of = if self.steps < AS_MANY_AS_FIT { format!("/{}", self.steps) } else { String::new() };
        format!("{run}step {}{of}  bound {elbo:.3}  entropy {:.3}", report.step, report.entropy)
    }

    fn told(&self, report: &StepReport) -> Told {
        let left = Some(self.time_left(report)).filter(|left| left.is_finite());
        Told {
            text: self.text(report),
            step: Some(report.step),
            steps: Some(self.steps).filter(|steps| *steps < AS_MANY_AS_FIT),
            bound: self.smooth,
            entropy: Some(report.entropy),
            seconds_left: left,
        }
    }

    fn draw(&mut self, report: &StepReport) {
        const WIDTH: usize = 20;
        // A time limit may end it before all steps are done.
        let elapsed = self.begin.map_or(0.0, |(begin, _)| begin.elapsed().as_secs_f64());
        let by_time = self.time_limit.map_or(0.0, |limit| elapsed / limit);
        let share = (report.step as f64 / self.steps.max(1) as f64).max(by_time).min(1.0);
        let filled = (share * WIDTH as f64) as usize;
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(WIDTH - filled));
        let left = duration(self.time_left(report));
        let line = format!("{bar}  {}  {left} left  {}", self.text(report), self.leading);
        print::redraw(&line);
        self.drawn = Some(Instant::now());
    }
}

impl Observer for Progress<'_> {
    fn models(&mut self, words: &[u16], width: usize) {
        if self.is_due() {
            self.leading = leading(words, width, self.problem.space());
        }
    }

    fn prepare(&mut self, done: usize, parts: usize) -> ControlFlow<()> {
        self.signals.heed();
        let share = done as f64 / parts.max(1) as f64;
        let begin = *self.preparing.get_or_insert_with(Instant::now);
        let left = begin.elapsed().as_secs_f64() * (1.0 - share) / share;
        let left = if share > 0.01 { format!(", {} left", duration(left)) } else { String::new() };
        let text = format!("preparing: {:.0} %{left}", 100.0 * share);
        self.phase.tell(|| text.clone());
        self.signals.tell(|| Told { text: text.clone(), ..Told::default() });
        match self.show {
            Show::Nothing => {}
            Show::Bar => print::redraw(&text),
            Show::Lines => {
                let part = (share * TALKS as f64) as u64;
                if part > self.prepared {
                    self.prepared = part;
                    print::talk(&text);
                }
            }
        }
        // A run that is killed has not prepared for nothing.
        if self.kept.elapsed() >= KEEP {
            let _ = save_preparation(&self.preparation, self.problem);
            self.kept = Instant::now();
        }
        self.goes_on()
    }

    fn wants_gradient_norm(&mut self, report: &StepReport) -> bool {
        self.ends_part(report, LINES, self.recorded)
    }

    fn step(&mut self, report: &StepReport) -> ControlFlow<()> {
        self.signals.heed();
        self.begin.get_or_insert_with(|| (Instant::now(), report.step));
        self.last = (report.step, report.seconds);
        self.steps = report.planned;
        let sums = &mut self.sums;
        sums.steps += 1.0;
        sums.elbo += report.elbo;
        sums.entropy += report.entropy;
        sums.dropped += report.dropped.len();
        let smooth = self.smooth.get_or_insert(report.elbo);
        *smooth += SMOOTH * (report.elbo - *smooth);
        if !smooth.is_finite() {
            *smooth = report.elbo;
        }
        if self.ends_part(report, LINES, self.recorded) {
            self.recorded = report.seconds;
            self.record(report.gradient_norm);
        }
        if self.is_due() {
            self.draw(report);
        }
        self.signals.tell(|| self.told(report));
        if self.show == Show::Lines && self.ends_part(report, TALKS, self.talked) {
            self.talked = report.seconds;
            print::talk(&self.text(report));
        }
        self.goes_on()
    }
}

/// What is said of a run that can be taken up again.
pub(crate) fn interrupted(dir: &RunDir) -> String {
    let shown = dir.path().display();
    format!(
        "interrupted; the work is saved in {shown}\n\
         hint: the same command with --resume goes on, `vti check {shown}` shows what there is so far"
    )
}

/// The models that were drawn most often, with their shares.
fn leading(words: &[u16], width: usize, space: &dyn ModelSpace) -> String {
    let mut counts: HashMap<&[u16], usize> = HashMap::new();
    words.chunks_exact(width).for_each(|word| *counts.entry(word).or_default() += 1);
    let mut counts: Vec<(&[u16], usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let rows = (words.len() / width).max(1);
    let share = |count: usize| 100 * count / rows;
    let shown = counts.iter().take(2).map(|(word, count)| format!("{} {} %", space.label(word), share(*count)));
    shown.collect::<Vec<_>>().join("  ")
}

/// Seconds as people say them.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => "?".into(),
        s if s < 1.0 => format!("{s:.1} s"),
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// All lines of a file; half a line at the end is of a run that was killed.
pub(crate) fn lines(path: &Path) -> Result<Vec<Line>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.with_context(|| path.display().to_string())?,
    };
    Ok(parse_lines(BufReader::new(file)))
}

/// What lines say that can be read.
pub(crate) fn parse_lines(from: impl BufRead) -> Vec<Line> {
    from.lines().map_while(Result::ok).filter_map(|text| serde_json::from_str(&text).ok()).collect()
}

/// The trace that a page shows: that of the run whose posterior was kept.
pub(crate) fn trace(path: &Path, replicate: Option<usize>) -> Result<Vec<Trace>> {
    Ok(trace_of(lines(path)?, replicate))
}

/// The trace of one run of several.
pub(crate) fn trace_of(lines: Vec<Line>, replicate: Option<usize>) -> Vec<Trace> {
    let own = lines.into_iter().filter(|line| line.replicate == replicate);
    let point =
        |line: Line| Some(Trace { step: line.step, seconds: line.seconds, elbo: line.elbo?, entropy: line.entropy });
    own.filter_map(point).collect()
}

/// Takes out lines of steps that will be done again.
fn forget(path: &Path, done: u64, replicate: Option<usize>) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let kept = lines(path)?.into_iter().filter(|line| line.replicate != replicate || line.step <= done);
    let texts = kept.map(|line| serde_json::to_string(&line)).collect::<Result<Vec<_>, _>>()?;
    let text: String = texts.into_iter().map(|text| text + "\n").collect();
    rundir::write(path, text.as_bytes())
}
