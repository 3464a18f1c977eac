//! Rights of the connection's role on the audit log.

use sqlx::PgExecutor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    pub is_owner: bool,
    /// Allowed to delete rows of the table directly.
    pub may_delete: bool,
    /// Allowed to remove old rows through the owner's function.
    pub may_remove: bool,
}

pub async fn rights(executor: impl PgExecutor<'_>) -> sqlx::Result<Rights> {
    sqlx::query_as!(
        Rights,
        r#"select pg_has_role(c.relowner, 'usage') as "is_owner!", has_table_privilege(c.oid, 'delete') as "may_delete!",
                  has_function_privilege('dalsegno.remove_old_audit(timestamptz, bigint)', 'execute') as "may_remove!"
             from pg_class as c where c.oid = 'dalsegno.audit'::regclass"#
    )
    .fetch_one(executor)
    .await
}
