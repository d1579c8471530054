import type { Expression, ExpressionBuilder, ReferenceExpression, SqlBool } from 'kysely';

/** The pattern of `like` for texts that have this one as a part. */
export function containing(part: string): string {
  return `%${part.replaceAll(/[\\%_]/g, '\\$&')}%`;
}

/** Whether a column has one of the values: one parameter however many they are, so that the statement stays the same. */
export function isOneOf<DB, TB extends keyof DB>(
  eb: ExpressionBuilder<DB, TB>,
  column: ReferenceExpression<DB, TB>,
  values: readonly string[],
): Expression<SqlBool> {
  return eb(column, '=', eb.fn.any(eb.val(values)) as never);
}
