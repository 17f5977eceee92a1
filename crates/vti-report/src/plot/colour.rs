//! Colours, in one place.

/// Ten colours told apart by people with any kind of colour vision: those of Okabe and Ito, then a grey and a brown.
pub const PALETTE: [&str; 10] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442", "#8a8a8a", "#7a4a1e"];

/// The same on a dark ground: what would vanish there is lighter.
pub(crate) const PALETTE_DARK: [&str; 10] =
    ["#4ba3dc", "#f28c3c", "#2cc79a", "#e29cc3", "#f0b840", "#8fcdf2", "#e6e6e6", "#f0e442", "#9a9a9a", "#b98a5a"];

/// The colour of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// The colour of a series, counted from 0; after [`PALETTE`]'s last they start again.
    Series(usize),
    /// The colour of text.
    Ink,
    /// The colour of less important text.
    Muted,
}

impl Default for Colour {
    fn default() -> Self {
        Self::Series(0)
    }
}

/// Where a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    /// A file of its own: fixed colours on white.
    Paper,
    /// In the page, which sets the colours for light and dark.
    Page,
}

impl Theme {
    pub(crate) fn colour(self, colour: Colour) -> String {
        match (self, colour) {
            (Self::Paper, Colour::Series(index)) => PALETTE[index % PALETTE.len()].into(),
            (Self::Page, Colour::Series(index)) => format!("var(--s{})", index % PALETTE.len()),
            (_, Colour::Ink) => self.ink().into(),
            (Self::Paper, Colour::Muted) => "#666".into(),
            (Self::Page, Colour::Muted) => "var(--muted)".into(),
        }
    }

    pub(crate) fn ink(self) -> &'static str {
        match self {
            Self::Paper => "#222",
            Self::Page => "var(--ink)",
        }
    }

    pub(crate) fn grid(self) -> &'static str {
        match self {
            Self::Paper => "#e4e4e4",
            Self::Page => "var(--grid)",
        }
    }

    pub(crate) fn frame(self) -> &'static str {
        match self {
            Self::Paper => "#888",
            Self::Page => "var(--frame)",
        }
    }

    pub(crate) fn ground(self) -> &'static str {
        match self {
            Self::Paper => "#fff",
            Self::Page => "var(--card)",
        }
    }
}
