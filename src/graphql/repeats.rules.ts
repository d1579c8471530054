import { type ASTNode, type DocumentNode, Kind, type SelectionSetNode, visit } from 'graphql';

/**
 * How often a field stands in one selection under one name at most, inline fragments unfolded. Validation compares each
 * with each, and all that is selected below.
 */
export function mostRepeats(document: DocumentNode): number {
  let most = 0;
  visit(document, {
    SelectionSet(set, _key, parent) {
      // It is a part of the selection that it stands in.
      if (isInlineFragment(parent)) return;
      for (const count of countsOf(set).values()) most = Math.max(most, count);
    },
  });
  return most;
}

function countsOf(set: SelectionSetNode): Map<string, number> {
  const counts = new Map<string, number>();
  const open = [set];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const selection of next.selections) {
      if (selection.kind === Kind.INLINE_FRAGMENT) open.push(selection.selectionSet);
      if (selection.kind !== Kind.FIELD) continue;
      const name = (selection.alias ?? selection.name).value;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  return counts;
}

function isInlineFragment(parent: ASTNode | readonly ASTNode[] | undefined): boolean {
  return parent !== undefined && 'kind' in parent && parent.kind === Kind.INLINE_FRAGMENT;
}
