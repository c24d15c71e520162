//! Searching in texts. The letters a to z are found whatever their case, on both databases alike; every other sign as
//! it is written.

use sea_orm::{
    Condition, DbBackend, EntityTrait, IdenStatic as _,
    sea_query::{Expr, ExprTrait as _, Func, LikeExpr},
};

/// Rows in which one of these columns contains the text.
pub(super) fn contains<E: EntityTrait>(backend: DbBackend, columns: &[E::Column], text: &str) -> Condition {
    let escaped: String = text
        .to_ascii_lowercase()
        .chars()
        .filter(|c| *c != '\0')
        .flat_map(|c| ['\\'].into_iter().filter(move |_| matches!(c, '%' | '_' | '\\')).chain([c]))
        .collect();
    let pattern = || LikeExpr::new(format!("%{escaped}%")).escape('\\');
    // The pattern's letters a to z are small. SQLite makes just these small too; PostgreSQL those of the database's
    // language, unless the text is compared by its bytes.
    let bytes = |column: E::Column| match backend {
        DbBackend::Postgres => {
            Expr::cust(format!(r#""{}"."{}" COLLATE "C""#, E::default().table_name(), column.as_str()))
        }
        _ => Expr::col((E::default(), column)),
    };
    columns
        .iter()
        .fold(Condition::any(), |any, column| any.add(Expr::expr(Func::lower(bytes(*column))).like(pattern())))
}
