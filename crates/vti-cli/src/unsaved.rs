//! What could not be written while there was still an answer to find and to print.

use anyhow::Result;

/// Files that could not be written, and why.
#[derive(Debug, Default)]
pub(crate) struct Unsaved(Vec<anyhow::Error>);

impl Unsaved {
    /// Goes on after something could not be written.
    pub(crate) fn note(&mut self, written: Result<()>) {
        self.0.extend(written.err());
    }

    /// Goes on after several things could not be written.
    pub(crate) fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Tells it, once everything else has been told.
    pub(crate) fn tell(self) -> Result<()> {
        let mut told: Vec<String> = Vec::new();
        for text in self.0.iter().map(crate::failure::message) {
            if !told.contains(&text) {
                told.push(text);
            }
        }
        if told.is_empty() {
            return Ok(());
        }
        anyhow::bail!("not everything could be saved\n{}", told.join("\n"))
    }
}
