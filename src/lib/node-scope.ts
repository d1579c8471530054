import {
  AliasNode,
  AndNode,
  BinaryOperationNode,
  ColumnNode,
  type DeleteQueryNode,
  IdentifierNode,
  type InsertQueryNode,
  type JoinNode,
  type KyselyPlugin,
  type MergeQueryNode,
  OnNode,
  type OperationNode,
  OperationNodeTransformer,
  OperatorNode,
  type PluginTransformQueryArgs,
  type PluginTransformResultArgs,
  PrimitiveValueListNode,
  type QueryId,
  type QueryResult,
  type RawNode,
  ReferenceNode,
  type RootOperationNode,
  type SelectQueryNode,
  TableNode,
  type UnknownRow,
  type UpdateQueryNode,
  ValueListNode,
  ValueNode,
  ValuesNode,
  WhereNode,
} from 'kysely';

/** A query that the tenant's door does not let through: a fault of the program, never of a caller. */
export class NodeScopeError extends Error {
  override name = 'NodeScopeError';
}

/** What the tenant's door knows of the tables; a table in neither set does not pass it. */
export interface TableScopes {
  /** Tables with a `node_id` column: the door adds the node to every use of one. */
  tenant: ReadonlySet<string>;
  /** Tables that are the same for every node. */
  global: ReadonlySet<string>;
}

const DIRECTIONS = new Set(['asc', 'desc', 'asc nulls first', 'asc nulls last', 'desc nulls first', 'desc nulls last']);

/** Adds `node_id = nodeId` to every use of a tenant table in a query, and refuses what it cannot scope. */
export class NodeScope extends OperationNodeTransformer implements KyselyPlugin {
  readonly #nodeId: string;
  readonly #scopes: TableScopes;
  #commonTables: ReadonlySet<string> = new Set();

  constructor(nodeId: string, scopes: TableScopes) {
    super();
    this.#nodeId = nodeId;
    this.#scopes = scopes;
  }

  transformQuery(args: PluginTransformQueryArgs): RootOperationNode {
    this.#commonTables = new Set(commonTableNames(args.node));
    for (const name of this.#commonTables) {
      if (this.#scopes.tenant.has(name)) throw new NodeScopeError(`a common table hides the table ${name}`);
    }
    return this.transformNode(args.node);
  }

  async transformResult(args: PluginTransformResultArgs): Promise<QueryResult<UnknownRow>> {
    return args.result;
  }

  protected override transformSelectQuery(node: SelectQueryNode, queryId?: QueryId): SelectQueryNode {
    const query = super.transformSelectQuery(node, queryId);
    return this.#withWhere(query, this.#conditionsOf(query.from?.froms ?? []));
  }

  protected override transformUpdateQuery(node: UpdateQueryNode, queryId?: QueryId): UpdateQueryNode {
    const query = super.transformUpdateQuery(node, queryId);
    for (const update of query.updates ?? []) {
      if (ColumnNode.is(update.column) && update.column.column.name === 'node_id') {
        throw new NodeScopeError('a row does not move to another node');
      }
    }
    return this.#withWhere(
      query,
      this.#conditionsOf([...(query.table ? [query.table] : []), ...(query.from?.froms ?? [])]),
    );
  }

  protected override transformDeleteQuery(node: DeleteQueryNode, queryId?: QueryId): DeleteQueryNode {
    const query = super.transformDeleteQuery(node, queryId);
    return this.#withWhere(query, this.#conditionsOf([...query.from.froms, ...(query.using?.tables ?? [])]));
  }

  protected override transformJoin(node: JoinNode, queryId?: QueryId): JoinNode {
    const join = super.transformJoin(node, queryId);
    const condition = this.#conditionsOf([join.table])[0];
    if (!condition) return join;
    return { ...join, on: join.on ? OnNode.cloneWithOperation(join.on, 'And', condition) : OnNode.create(condition) };
  }

  protected override transformInsertQuery(node: InsertQueryNode, queryId?: QueryId): InsertQueryNode {
    const query = super.transformInsertQuery(node, queryId);
    const table = query.into ? tableName(query.into) : undefined;
    if (!query.into || !table || !this.#isTenant(table)) return query;
    if (!query.columns || !query.values || !ValuesNode.is(query.values)) {
      throw new NodeScopeError(`an insert into ${table} through the tenant's door lists its values`);
    }
    const onConflict = query.onConflict?.updates
      ? {
          ...query.onConflict,
          updateWhere: this.#and(query.onConflict.updateWhere, this.#condition(TableNode.create(table))),
        }
      : query.onConflict;
    return { ...query, ...this.#insertedValues(query.columns, query.values), ...(onConflict ? { onConflict } : {}) };
  }

  protected override transformMergeQuery(_node: MergeQueryNode): MergeQueryNode {
    throw new NodeScopeError("merge does not pass the tenant's door");
  }

  protected override transformRaw(node: RawNode): RawNode {
    const text = node.sqlFragments.join('');
    if (node.parameters.length > 0 || !DIRECTIONS.has(text)) {
      throw new NodeScopeError(`raw SQL does not pass the tenant's door: ${text}`);
    }
    return node;
  }

  #insertedValues(columns: readonly ColumnNode[], values: ValuesNode): Pick<InsertQueryNode, 'columns' | 'values'> {
    const at = columns.findIndex((column) => column.column.name === 'node_id');
    if (at >= 0) {
      for (const row of values.values) {
        const value = PrimitiveValueListNode.is(row) ? row.values[at] : row.values[at];
        const given = isValueNode(value) ? value.value : value;
        if (given !== this.#nodeId) throw new NodeScopeError('an inserted row names another node');
      }
      return { columns, values };
    }
    const rows = values.values.map((row) =>
      PrimitiveValueListNode.is(row)
        ? PrimitiveValueListNode.create([...row.values, this.#nodeId])
        : ValueListNode.create([...row.values, ValueNode.create(this.#nodeId)]),
    );
    return { columns: [...columns, ColumnNode.create('node_id')], values: ValuesNode.create(rows) };
  }

  #withWhere<Q extends { readonly where?: WhereNode }>(query: Q, conditions: OperationNode[]): Q {
    const where = conditions.reduce<WhereNode | undefined>((all, condition) => this.#and(all, condition), query.where);
    return where ? { ...query, where } : query;
  }

  #and(where: WhereNode | undefined, condition: OperationNode): WhereNode {
    return where ? { ...where, where: AndNode.create(where.where, condition) } : WhereNode.create(condition);
  }

  #conditionsOf(sources: readonly OperationNode[]): OperationNode[] {
    return sources.flatMap((source) => {
      const aliased = AliasNode.is(source) ? source.node : source;
      const name = tableName(aliased);
      if (!name || !this.#isTenant(name)) return [];
      const alias = AliasNode.is(source) && IdentifierNode.is(source.alias) ? source.alias.name : name;
      return [this.#condition(TableNode.create(alias))];
    });
  }

  #condition(table: TableNode): OperationNode {
    const column = ReferenceNode.create(ColumnNode.create('node_id'), table);
    return BinaryOperationNode.create(column, OperatorNode.create('='), ValueNode.create(this.#nodeId));
  }

  #isTenant(table: string): boolean {
    if (this.#scopes.tenant.has(table)) return true;
    if (this.#scopes.global.has(table) || this.#commonTables.has(table)) return false;
    throw new NodeScopeError(`the table ${table} does not pass the tenant's door`);
  }
}

function tableName(node: OperationNode): string | undefined {
  return TableNode.is(node) ? node.table.identifier.name : undefined;
}

function isValueNode(value: unknown): value is ValueNode {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'ValueNode';
}

function commonTableNames(node: RootOperationNode): string[] {
  if (!('with' in node) || !node.with) return [];
  return node.with.expressions.map((expression) => expression.name.table.table.identifier.name);
}
