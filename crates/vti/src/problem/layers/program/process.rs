//! One process of a program: asked, watched, and ended.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::line;
use crate::problem::DensityError;
use crate::problem::layers::Earth;

/// The longest line that is read, the lines that wait to be, and how much of standard error is kept.
const LONGEST_LINE: u64 = 1 << 24;
const LINES_WAITING: usize = 256;
const TAIL: usize = 2000;

/// How long a process may take to end by itself when its input has, and how often one looks.
const GRACE: Duration = Duration::from_millis(300);
const LOOK: Duration = Duration::from_millis(2);

/// Why a process gave no more answers.
pub(super) enum Stop {
    /// It ended, or closed its output.
    Ended,
    /// Something that no other attempt would change, in words that go on from the program's name.
    Failed(String),
}

/// A process, with a thread for each of its streams so that none can block another.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    child: Child,
    /// None when there is nothing more to say.
    input: Option<Sender<String>>,
    lines: Receiver<String>,
    /// The end of what it said on standard error.
    tail: Arc<Mutex<VecDeque<u8>>>,
    listener: Option<JoinHandle<()>>,
}

impl Process {
    pub(super) fn start(command: &[String]) -> Result<Self, DensityError> {
        let name = command.join(" ");
        let failed = |reason: &str| DensityError::Fatal { reason: format!("the forward program `{name}` {reason}") };
        let mut starting = Command::new(&command[0]);
        starting.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Python would keep its answers back.
        starting.env("PYTHONUNBUFFERED", "1");
        // Ctrl-C is for us: work is saved, for which answers are still needed.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut starting, 0);
        let mut child = starting.spawn().map_err(|error| failed(&format!("could not be started: {error}")))?;
        let (Some(mut input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed("has no streams"));
        };
        let (to_input, texts) = channel::<String>();
        std::thread::spawn(move || {
            // An end of the process is seen by those who wait for its answers.
            for text in texts {
                if input.write_all(text.as_bytes()).and_then(|()| input.flush()).is_err() {
                    return;
                }
            }
        });
        let (to_lines, lines) = sync_channel(LINES_WAITING);
        std::thread::spawn(move || read_lines(output, &to_lines));
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&tail);
        let listener = std::thread::spawn(move || keep_tail(errors, &kept));
        Ok(Self { name, child, input: Some(to_input), lines, tail, listener: Some(listener) })
    }

    /// Sends earths, and gives every answer to `answer`, which may refuse it.
    pub(super) fn ask(
        &mut self,
        earths: &[Earth],
        timeout: Duration,
        answer: &mut impl FnMut(&str) -> Result<(), String>,
    ) -> Result<(), Stop> {
        match self.lines.try_recv() {
            Ok(text) => return Err(Stop::Failed(surplus(&text))),
            Err(TryRecvError::Disconnected) => return Err(Stop::Ended),
            Err(TryRecvError::Empty) => {}
        }
        let text: String = earths.iter().map(|earth| line::write(earth) + "\n").collect();
        if let Some(input) = &self.input {
            // Who no longer reads has ended.
            let _ = input.send(text);
        }
        for _ in earths {
            match self.lines.recv_timeout(timeout) {
                Ok(text) => answer(&text).map_err(Stop::Failed)?,
                Err(RecvTimeoutError::Disconnected) => return Err(Stop::Ended),
                Err(RecvTimeoutError::Timeout) => {
                    let seconds = timeout.as_secs_f64();
                    return Err(Stop::Failed(format!(
                        "gave no answer within {seconds} s\nhint: it must answer every line with one line, and flush it"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Ends its input and waits for its end. Fails where it has more to say than it was asked for.
    pub(super) fn finish(&mut self, patience: Duration) -> Result<(), String> {
        self.input = None;
        match self.lines.recv_timeout(patience) {
            Ok(text) => Err(surplus(&text)),
            Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => Ok(()),
        }
    }

    /// How it ended, in words that go on from its name.
    pub(super) fn how_it_ended(&mut self) -> String {
        let status = self.wait();
        let how = status.map_or_else(|| "closed its output".into(), |status| format!("ended ({status})"));
        format!("{how} without an answer")
    }

    /// An error with what the program said last. The process is at an end.
    pub(super) fn failure(mut self, what: &str, earth: &Earth) -> DensityError {
        self.end(Duration::ZERO);
        let since = Instant::now();
        while self.listener.as_ref().is_some_and(|listener| !listener.is_finished()) && since.elapsed() < GRACE {
            std::thread::sleep(LOOK);
        }
        let said: Vec<u8> = self.tail.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let said = String::from_utf8_lossy(&said);
        let lines =
            said.lines().filter(|text| !text.trim().is_empty()).map(|text| format!("\n  {}", line::shown(text)));
        let last: Vec<String> = lines.collect();
        let said = match last.is_empty() {
            true => String::new(),
            false => format!("\nit said:{}", last[last.len().saturating_sub(8)..].concat()),
        };
        let (name, asked) = (&self.name, line::shown(&line::write(earth)));
        let (what, hint) =
            what.split_once('\n').map_or((what, String::new()), |(what, hint)| (what, format!("\n{hint}")));
        DensityError::Fatal {
            reason: format!("the forward program `{name}` {what}; it was asked for `{asked}`{said}{hint}"),
        }
    }

    /// How it ended, if it does soon.
    fn wait(&mut self) -> Option<ExitStatus> {
        let since = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if since.elapsed() < GRACE => std::thread::sleep(LOOK),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// Ends it and all that it started: by itself within `grace`, or by force.
    fn end(&mut self, grace: Duration) {
        self.input = None;
        let since = Instant::now();
        while since.elapsed() < grace && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK);
        }
        // Its group goes by the number of the process. Who has left the group by then is not ours any more.
        #[cfg(unix)]
        {
            let group = format!("-{}", self.child.id());
            let mut kill = Command::new("kill");
            kill.args(["-KILL", "--", &group]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let _ = kill.status();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end(GRACE);
    }
}

/// What is wrong with a line that nobody asked for.
fn surplus(text: &str) -> String {
    format!("printed more lines than it was asked for: `{}`", line::shown(text))
}

/// Gives each line to whoever waits for it, until there is nobody, or nothing more.
fn read_lines(output: impl Read, to: &SyncSender<String>) {
    let mut output = BufReader::new(output);
    loop {
        let mut bytes = Vec::new();
        match output.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes) {
            // A line without its end is cut off: the process died while it wrote.
            Ok(1..) if bytes.ends_with(b"\n") || bytes.len() as u64 == LONGEST_LINE => {}
            Ok(_) | Err(_) => return,
        }
        if to.send(String::from_utf8_lossy(&bytes).into_owned()).is_err() {
            return;
        }
    }
}

/// Keeps the end of what is said.
fn keep_tail(mut errors: impl Read, tail: &Mutex<VecDeque<u8>>) {
    let mut part = [0; 512];
    while let Ok(count @ 1..) = errors.read(&mut part) {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&part[..count]);
        let surplus = tail.len().saturating_sub(TAIL);
        tail.drain(..surplus);
    }
}
