import {
  type AggregateFunctionNode,
  AliasNode,
  AndNode,
  BinaryOperationNode,
  ColumnNode,
  type ColumnUpdateNode,
  type CommonTableExpressionNode,
  type DeleteQueryNode,
  FunctionNode,
  IdentifierNode,
  type InsertQueryNode,
  type JoinNode,
  OnNode,
  type OperationNode,
  OperationNodeTransformer,
  OperatorNode,
  ParensNode,
  PrimitiveValueListNode,
  type QueryId,
  type RawNode,
  ReferenceNode,
  type RootOperationNode,
  SelectQueryNode,
  TableNode,
  type UpdateQueryNode,
  ValueListNode,
  ValueNode,
  ValuesNode,
  WhereNode,
  type WithNode,
} from 'kysely';
import { isObject } from '../../lib/json.ts';

/** Thrown for a query that cannot be scoped to one tenant: a bug in the program, never a caller's mistake. */
export class NodeScopeError extends Error {
  override name = 'NodeScopeError';
}

/** Makes the error for a statement, or a part of one, that a query scoped to a tenant must not use. */
export function refusal(what: string): NodeScopeError {
  return new NodeScopeError(`${what} is not allowed in a tenant-scoped query`);
}

const NODE_ID = 'node_id';

/** Returns the name of a plain table. @throws NodeScopeError for any other source of rows, or if a schema is named. */
export function tableName(source: OperationNode): string {
  if (!TableNode.is(source)) throw refusal(`rows of a ${source.kind}`);
  const { schema, identifier } = source.table;
  if (schema) throw refusal(`the schema ${schema.name}`);
  return identifier.name;
}

/** Builds the condition `table.node_id = nodeId`, where `table` is a table's name or its alias. */
export function isOfNode(table: string, nodeId: string): OperationNode {
  const column = ReferenceNode.create(ColumnNode.create(NODE_ID), TableNode.create(table));
  return BinaryOperationNode.create(column, OperatorNode.create('='), ValueNode.create(nodeId));
}

/** Joins two conditions by `and`, with the existing one in parentheses in case it contains an `or`. */
export function both(existing: OperationNode | undefined, condition: OperationNode): OperationNode {
  return existing
    ? AndNode.create(ParensNode.is(existing) ? existing : ParensNode.create(existing), condition)
    : condition;
}

/** Adds a condition to a `where` clause by `and`; makes the clause if there is none. */
function whereBoth(where: WhereNode | undefined, condition: OperationNode): WhereNode {
  return WhereNode.create(both(where?.where, condition));
}

/** Checks that an update does not set `node_id`. @throws NodeScopeError if it does. */
function refuseMove(updates: readonly ColumnUpdateNode[] | undefined): void {
  for (const { column } of updates ?? []) {
    const target = ReferenceNode.is(column) ? column.column : column;
    if (!ColumnNode.is(target)) throw refusal(`setting a ${target.kind}`);
    if (target.column.name === NODE_ID) throw new NodeScopeError('a row cannot move to another tenant');
  }
}

/**
 * Returns the columns and values of an insert, with the tenant's `node_id` in each row.
 * @throws NodeScopeError if the insert has no list of values, or a row names another tenant.
 */
function insertedRows(
  { columns, values }: InsertQueryNode,
  nodeId: string,
): Required<Pick<InsertQueryNode, 'columns' | 'values'>> {
  if (!columns || !values || !ValuesNode.is(values)) throw refusal('an insert without a list of values');
  const at = columns.findIndex((column) => column.column.name === NODE_ID);
  if (at >= 0) {
    for (const row of values.values) {
      const value: unknown = row.values[at];
      const insertedNodeId = isObject(value) && value.kind === 'ValueNode' ? value.value : value;
      if (insertedNodeId !== nodeId) throw new NodeScopeError('an inserted row belongs to another tenant');
    }
    return { columns, values };
  }
  const rows = values.values.map((row) =>
    PrimitiveValueListNode.is(row)
      ? PrimitiveValueListNode.create([...row.values, nodeId])
      : ValueListNode.create([...row.values, ValueNode.create(nodeId)]),
  );
  return { columns: [...columns, ColumnNode.create(NODE_ID)], values: ValuesNode.create(rows) };
}

/** The tables that a tenant's queries may name; a table in neither set is refused. */
export interface TableScopes {
  /** Tables with a `node_id` column, of which a tenant's queries see only the tenant's rows. */
  tenant: ReadonlySet<string>;
  /** Tables whose rows are the same for every tenant; a tenant's queries may read but not write them. */
  global: ReadonlySet<string>;
}

const STATEMENTS = new Set(['SelectQueryNode', 'InsertQueryNode', 'UpdateQueryNode', 'DeleteQueryNode']);

/** The raw texts that Kysely's builders insert; any other is raw SQL, and refused. */
const BUILDERS_TEXTS = new Set([
  'asc',
  'desc',
  'asc nulls first',
  'asc nulls last',
  'desc nulls first',
  'desc nulls last',
  'true',
]);

/**
 * The SQL functions that a tenant's queries may call; others could get around the scope, by running a text as a query.
 */
const FUNCTIONS = new Set(
  (
    'abs any array_agg avg bool_and bool_or char_length coalesce concat count date_trunc dense_rank floor ceil greatest identifier_key ' +
    'json_agg json_array_elements_text jsonb_agg lag lead least left length lower max min now nullif octet_length rank round ' +
    'row_number sum to_json to_jsonb trim upper'
  ).split(' '),
);

/**
 * Adds `node_id = nodeId` to every use of a tenant table in a statement, and refuses statements that it cannot scope.
 */
export class NodeScope extends OperationNodeTransformer {
  readonly #nodeId: string;
  readonly #scopes: TableScopes;
  /** The names of the common table expressions that are in scope where the transformer currently is. */
  #commonTables: ReadonlySet<string> = new Set();

  constructor(nodeId: string, scopes: TableScopes) {
    super();
    this.#nodeId = nodeId;
    this.#scopes = scopes;
  }

  /** Returns the statement scoped to the tenant. @throws NodeScopeError if it cannot be scoped. */
  apply(statement: RootOperationNode): RootOperationNode {
    if (!STATEMENTS.has(statement.kind)) throw refusal(statement.kind);
    this.#commonTables = new Set();
    return this.transformNode(statement);
  }

  protected override transformSelectQuery(node: SelectQueryNode, queryId?: QueryId): SelectQueryNode {
    const query = this.#naming(node, () => super.transformSelectQuery(node, queryId));
    return this.#naming(node, () => this.#scoped(query, query.from?.froms ?? []));
  }

  protected override transformUpdateQuery(node: UpdateQueryNode, queryId?: QueryId): UpdateQueryNode {
    const query = this.#naming(node, () => super.transformUpdateQuery(node, queryId));
    refuseMove(query.updates);
    this.#tenantTarget(query.table);
    return this.#naming(node, () =>
      this.#scoped(query, [...(query.table ? [query.table] : []), ...(query.from?.froms ?? [])]),
    );
  }

  protected override transformDeleteQuery(node: DeleteQueryNode, queryId?: QueryId): DeleteQueryNode {
    const query = this.#naming(node, () => super.transformDeleteQuery(node, queryId));
    for (const from of query.from.froms) this.#tenantTarget(from);
    return this.#naming(node, () => this.#scoped(query, [...query.from.froms, ...(query.using?.tables ?? [])]));
  }

  protected override transformInsertQuery(node: InsertQueryNode, queryId?: QueryId): InsertQueryNode {
    const query = this.#naming(node, () => super.transformInsertQuery(node, queryId));
    const table = this.#tenantTarget(query.into);
    refuseMove(query.onConflict?.updates);
    if (query.onDuplicateKey || query.replace || query.orAction) throw refusal('a replacing insert');
    const rows = insertedRows(query, this.#nodeId);
    if (!query.onConflict?.updates) return { ...query, ...rows };
    const updateWhere = whereBoth(query.onConflict.updateWhere, isOfNode(table, this.#nodeId));
    return { ...query, ...rows, onConflict: { ...query.onConflict, updateWhere } };
  }

  protected override transformJoin(node: JoinNode, queryId?: QueryId): JoinNode {
    const join = super.transformJoin(node, queryId);
    switch (join.joinType) {
      case 'InnerJoin':
      case 'LeftJoin':
      case 'LateralInnerJoin':
      case 'LateralLeftJoin': {
        const condition = this.#condition(join.table);
        return condition ? { ...join, on: OnNode.create(both(join.on?.on, condition)) } : join;
      }
      case 'CrossJoin':
      case 'LateralCrossJoin':
        // `#scoped` adds its condition to `where`.
        return join;
      default:
        // Other joins, such as a right join, return unmatched rows of the joined table regardless of `on`.
        throw refusal(join.joinType);
    }
  }

  protected override transformWith(node: WithNode, queryId?: QueryId): WithNode {
    const visible = this.#commonTables;
    const hidden = new Set(node.recursive ? [] : node.expressions.map(nameOf));
    const expressions = node.expressions.map((expression) => {
      // Without `recursive`, a common table expression sees only those before it; inside it, its own name means a
      // table.
      this.#commonTables = visible.difference(hidden);
      const transformed = this.transformNode(expression, queryId);
      hidden.delete(nameOf(expression));
      return transformed;
    });
    this.#commonTables = visible;
    return { ...node, expressions };
  }

  protected override transformFunction(node: FunctionNode, queryId?: QueryId): FunctionNode {
    if (!FUNCTIONS.has(node.func)) throw refusal(`the function ${node.func}`);
    return super.transformFunction(node, queryId);
  }

  protected override transformAggregateFunction(node: AggregateFunctionNode, queryId?: QueryId): AggregateFunctionNode {
    if (!FUNCTIONS.has(node.func)) throw refusal(`the function ${node.func}`);
    return super.transformAggregateFunction(node, queryId);
  }

  protected override transformMergeQuery(): never {
    throw refusal('merge');
  }

  protected override transformRaw(node: RawNode): RawNode {
    const text = node.sqlFragments.join('');
    if (node.parameters.length > 0 || !BUILDERS_TEXTS.has(text)) throw refusal(`raw SQL: ${text}`);
    return node;
  }

  /**
   * Runs `work` with the statement's common table expressions in scope. @throws NodeScopeError if one hides a table.
   */
  #naming<Result>({ with: names }: { with?: WithNode }, work: () => Result): Result {
    const outer = this.#commonTables;
    const own = names?.expressions.map(nameOf) ?? [];
    for (const name of own) {
      if (outer.has(name) || this.#scopes.tenant.has(name) || this.#scopes.global.has(name)) {
        throw new NodeScopeError(`a common table hides another table, ${name}`);
      }
    }
    this.#commonTables = new Set([...outer, ...own]);
    const result = work();
    this.#commonTables = outer;
    return result;
  }

  #scoped<Q extends { joins?: readonly JoinNode[]; where?: WhereNode }>(
    query: Q,
    sources: readonly OperationNode[],
  ): Q {
    const crossed = (query.joins ?? []).filter(({ joinType }) => joinType.endsWith('CrossJoin'));
    let { where } = query;
    for (const source of [...sources, ...crossed.map(({ table }) => table)]) {
      const condition = this.#condition(source);
      if (condition) where = whereBoth(where, condition);
    }
    return where ? { ...query, where } : query;
  }

  /**
   * Returns the tenant's condition for a source of rows; undefined for a subquery, which has its own, for the elements
   * of a JSON array, for a global table and for a common table expression.
   */
  #condition(source: OperationNode): OperationNode | undefined {
    const unaliased = AliasNode.is(source) ? source.node : source;
    if (SelectQueryNode.is(unaliased) || (FunctionNode.is(unaliased) && unaliased.func === 'json_array_elements_text'))
      return undefined;
    const name = tableName(unaliased);
    if (!this.#isTenant(name)) return undefined;
    return isOfNode(AliasNode.is(source) && IdentifierNode.is(source.alias) ? source.alias.name : name, this.#nodeId);
  }

  #isTenant(table: string): boolean {
    if (this.#scopes.tenant.has(table)) return true;
    if (this.#scopes.global.has(table) || this.#commonTables.has(table)) return false;
    throw refusal(`the table ${table}`);
  }

  /** Returns the name of the table that a statement writes to. @throws NodeScopeError unless it is a tenant table. */
  #tenantTarget(target: OperationNode | undefined): string {
    const name = target && tableName(AliasNode.is(target) ? target.node : target);
    if (name === undefined || !this.#scopes.tenant.has(name)) throw refusal(`writing to ${name ?? 'no table'}`);
    return name;
  }
}

function nameOf({ name }: CommonTableExpressionNode): string {
  return name.table.table.identifier.name;
}
