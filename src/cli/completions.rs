//! `completions`: scripts for shells, made from the definition of the command line.

use clap::{Args, CommandFactory};

use super::{Cli, error::CliError, output::Output};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host completions bash > /etc/bash_completion.d/kandev-host
  kandev-host completions zsh > \"${fpath[1]}/_kandev-host\"
  source <(kandev-host completions bash)";

/// Which shell.
#[derive(Args)]
pub struct Shell {
    /// The shell to write for
    shell: clap_complete::Shell,
}

/// Prints the script.
pub fn run(shell: &Shell, output: &Output) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell.shell, &mut Cli::command(), "kandev-host", &mut script);
    output.raw(&String::from_utf8_lossy(&script))
}
