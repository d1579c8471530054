/** What is subscribed to: every update, or the states of one transaction. */
export function queryOf(id: string | undefined) {
  if (id === undefined) return { query: 'subscription { transactionUpdates { cursor transaction { id status } } }' };
  return { query: 'subscription ($id: ID!) { transaction(id: $id) { id status } }', variables: { id } };
}
