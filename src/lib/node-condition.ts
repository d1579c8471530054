import {
  AndNode,
  BinaryOperationNode,
  ColumnNode,
  type ColumnUpdateNode,
  type InsertQueryNode,
  type OperationNode,
  OperatorNode,
  ParensNode,
  PrimitiveValueListNode,
  ReferenceNode,
  TableNode,
  ValueListNode,
  ValueNode,
  ValuesNode,
  WhereNode,
} from 'kysely';
import { NodeScopeError, refusal } from './node-scope-error.ts';

const NODE_ID = 'node_id';

/** The name of a plain table. @throws NodeScopeError for any other source of rows. */
export function tableName(source: OperationNode): string {
  if (!TableNode.is(source)) throw refusal(`rows of a ${source.kind}`);
  const { schema, identifier } = source.table;
  if (schema) throw refusal(`the schema ${schema.name}`);
  return identifier.name;
}

/** `table.node_id = nodeId`, where `table` is a table's name or its alias. */
export function isOfNode(table: string, nodeId: string): OperationNode {
  const column = ReferenceNode.create(ColumnNode.create(NODE_ID), TableNode.create(table));
  return BinaryOperationNode.create(column, OperatorNode.create('='), ValueNode.create(nodeId));
}

/** Both; the parentheses keep an `or` in the existing one apart. */
export function both(existing: OperationNode | undefined, condition: OperationNode): OperationNode {
  return existing
    ? AndNode.create(ParensNode.is(existing) ? existing : ParensNode.create(existing), condition)
    : condition;
}

/** A `where` that demands the condition too. */
export function whereBoth(where: WhereNode | undefined, condition: OperationNode): WhereNode {
  return WhereNode.create(both(where?.where, condition));
}

/** @throws NodeScopeError where `node_id` is among the columns that are set. */
export function refuseMove(updates: readonly ColumnUpdateNode[] | undefined): void {
  for (const { column } of updates ?? []) {
    const target = ReferenceNode.is(column) ? column.column : column;
    if (!ColumnNode.is(target)) throw refusal(`setting a ${target.kind}`);
    if (target.column.name === NODE_ID) throw new NodeScopeError('a row does not move to another node');
  }
}

/**
 * The columns and values of an insert, with the node in each row.
 * @throws NodeScopeError for rows that are not listed, or that name another node.
 */
export function insertedRows(
  { columns, values }: InsertQueryNode,
  nodeId: string,
): Required<Pick<InsertQueryNode, 'columns' | 'values'>> {
  if (!columns || !values || !ValuesNode.is(values)) throw refusal('an insert without a list of values');
  const at = columns.findIndex((column) => column.column.name === NODE_ID);
  if (at >= 0) {
    for (const row of values.values) refuseOther(row.values[at], nodeId);
    return { columns, values };
  }
  const rows = values.values.map((row) =>
    PrimitiveValueListNode.is(row)
      ? PrimitiveValueListNode.create([...row.values, nodeId])
      : ValueListNode.create([...row.values, ValueNode.create(nodeId)]),
  );
  return { columns: [...columns, ColumnNode.create(NODE_ID)], values: ValuesNode.create(rows) };
}

function refuseOther(value: unknown, nodeId: string): void {
  const given = isValueNode(value) ? value.value : value;
  if (given !== nodeId) throw new NodeScopeError('an inserted row names another node');
}

function isValueNode(value: unknown): value is ValueNode {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'ValueNode';
}
