// SPDX-License-Identifier: MIT OR Apache-2.0
//! What keys do.

use super::state::View;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Rows that PgUp and PgDn move by.
const PAGE: isize = 10;

/// Whether the view goes on.
#[derive(Debug, PartialEq, Eq)]
pub enum After {
    GoOn,
    Quit,
}

/// A key was pressed.
pub fn press(view: &mut View, key: KeyEvent) -> After {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return if key.code == KeyCode::Char('c') { After::Quit } else { After::GoOn };
    }
    if view.is_typing {
        typed(view, key.code);
        return After::GoOn;
    }
    if view.is_helping {
        view.is_helping = false;
        return if key.code == KeyCode::Char('q') { After::Quit } else { After::GoOn };
    }
    command(view, key.code)
}

/// While a filter is typed.
fn typed(view: &mut View, code: KeyCode) {
    match code {
        KeyCode::Enter => view.type_end(),
        KeyCode::Esc => view.back(),
        KeyCode::Backspace => {
            view.table_mut().filter.pop();
        }
        KeyCode::Char(letter) => view.table_mut().filter.push(letter),
        KeyCode::Up => view.table_mut().step(-1),
        KeyCode::Down => view.table_mut().step(1),
        _ => {}
    }
}

fn command(view: &mut View, code: KeyCode) -> After {
    let table = view.table_mut();
    match code {
        KeyCode::Char('q') => return After::Quit,
        KeyCode::Char('?' | 'h') => view.is_helping = true,
        KeyCode::Char('/') => view.is_typing = true,
        KeyCode::Char('r') => table.is_reversed = !table.is_reversed,
        KeyCode::Char('t') => view.turn(),
        KeyCode::Left | KeyCode::Char('<') => table.sort = table.sort.next(table.columns(), false),
        KeyCode::Right | KeyCode::Char('>') => table.sort = table.sort.next(table.columns(), true),
        KeyCode::Up | KeyCode::Char('k') => table.step(-1),
        KeyCode::Down | KeyCode::Char('j') => table.step(1),
        KeyCode::PageUp => table.step(-PAGE),
        KeyCode::PageDown => table.step(PAGE),
        KeyCode::Home => table.step(isize::MIN),
        KeyCode::End => table.step(isize::MAX),
        KeyCode::Enter | KeyCode::Char('l') => view.open(),
        KeyCode::Esc => view.back(),
        KeyCode::Backspace => view.opened = None,
        _ => {}
    }
    After::GoOn
}
