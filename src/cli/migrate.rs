//! `dalsegno migrate`: the migrations of the schema.

use clap::Subcommand;

use super::{Context, Exit, Failure, database::with_database};
use crate::db::{self, Database, Step, Use};

#[derive(Debug, Subcommand)]
pub(super) enum Migrate {
    /// Applies missing migrations.
    Up,
    /// Lists the migrations of this binary; exits 1 if one is missing in the database.
    Status,
}

pub(super) async fn run(command: &Migrate, context: &Context) -> Result<Exit, Failure> {
    let purpose = match command {
        Migrate::Up => Use::Visit,
        Migrate::Status => Use::Look,
    };
    with_database(context, purpose, async |database| {
        run_on_database(command, context, database).await
    })
    .await
}

async fn run_on_database(
    command: &Migrate,
    context: &Context,
    database: &Database,
) -> Result<Exit, Failure> {
    if let Migrate::Up = command {
        database.migrate().await?;
    }
    let steps = db::status(&database.pool).await?;
    context.output.print_data(&steps, || format_steps(&steps));
    match steps.iter().all(|step| step.applied) {
        true => Ok(Exit::Ok),
        false => Ok(Exit::Failed),
    }
}

fn format_steps(steps: &[Step]) -> String {
    let line = |step: &Step| {
        let state = if step.applied { "applied" } else { "missing" };
        format!("{state}  {}  {}\n", step.version, step.description)
    };
    steps.iter().map(line).collect()
}
