// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks. Colours only repeat what the text says; blue and yellow tell apart for every kind of colour vision.

use ratatui::style::{Color, Modifier, Style};

/// How things look on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    has_colors: bool,
}

impl Theme {
    /// What the environment says about the terminal; none if nothing can be drawn on it.
    pub fn of_environment() -> Option<Self> {
        let value = |name| std::env::var(name).unwrap_or_default();
        Self::of(&value("TERM"), &value("NO_COLOR"))
    }

    /// `TERM` and `NO_COLOR` (<https://no-color.org>: any text in it means no colours).
    pub fn of(term: &str, no_color: &str) -> Option<Self> {
        if matches!(term, "" | "dumb" | "unknown") {
            return None;
        }
        let is_mono = term.ends_with("-m") || term.ends_with("-mono") || term.starts_with("vt");
        Some(Self { has_colors: no_color.is_empty() && !is_mono })
    }

    /// A name, a number that counts.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The line that was chosen.
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Titles of columns.
    pub fn title(self) -> Style {
        self.colored(Color::Cyan)
    }

    /// The title of the column that sorts.
    pub fn sorting(self) -> Style {
        self.title().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// Packets were dropped, or the daemon is gone.
    pub fn notable(self) -> Style {
        self.colored(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// The passed rate over time.
    pub fn trend(self) -> Style {
        self.colored(Color::Cyan)
    }

    fn colored(self, color: Color) -> Style {
        if self.has_colors { Style::new().fg(color) } else { Style::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_only_where_the_terminal_has_them_and_nobody_minds() {
        let colored = |term, no_color| Theme::of(term, no_color).map(|theme| theme.notable().fg.is_some());
        assert_eq!(colored("xterm-256color", ""), Some(true));
        assert_eq!(colored("linux", ""), Some(true));
        assert_eq!(colored("xterm-256color", "1"), Some(false));
        assert_eq!(colored("vt100", ""), Some(false));
        assert_eq!(colored("xterm-mono", ""), Some(false));
        assert_eq!(colored("dumb", ""), None);
        assert_eq!(colored("", ""), None);
    }
}
