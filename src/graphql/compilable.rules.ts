import {
  BREAK,
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLBoolean,
  GraphQLInt,
  type GraphQLNullableInputType,
  type GraphQLSchema,
  getNullableType,
  isEnumType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';

/** Fields from which on an operation is not compiled: its code would be long, and take long to make. */
const MAX_FIELDS = 150;

/** Code has the names on the way to a field several times over. */
const MAX_NAME_LENGTH = 64;

const TYPENAME = '__typename';

/**
 * How many fields a valid operation has, fragments unfolded, where it may become code; undefined where not.
 *
 * What a caller writes must not reach the source of a program: of literals only whole numbers, booleans, null and enum
 * values pass, which have no text of their own, and of names those alone that are short and mean nothing to JavaScript. Compiled code
 * also knows no directives and no fields of the schema's own, writes other literals as numbers of 64 bits, and
 * tells places of an answer apart by the names on the way, joined with `_`.
 */
export function compilableFields(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): number | undefined {
  const fields = unfoldedFields(document, operation);
  return fields <= MAX_FIELDS && isPlain(schema, document) ? fields : undefined;
}

function isPlain(schema: GraphQLSchema, document: DocumentNode): boolean {
  const types = new TypeInfo(schema);
  const isGiven = (holds: (type: GraphQLNullableInputType) => boolean) => () => {
    const type = types.getInputType();
    return type && holds(getNullableType(type)) ? undefined : stop();
  };
  let plain = true;
  const stop = () => {
    plain = false;
    return BREAK;
  };
  visit(
    document,
    visitWithTypeInfo(types, {
      Name: ({ value }) =>
        value.length > MAX_NAME_LENGTH || (value.startsWith('__') && value !== TYPENAME) ? stop() : undefined,
      Field: ({ name, alias }) => {
        const { value } = alias ?? name;
        return value.includes('_') && value !== TYPENAME ? stop() : undefined;
      },
      Directive: stop,
      IntValue: isGiven((type) => type === GraphQLInt),
      BooleanValue: isGiven((type) => type === GraphQLBoolean),
      EnumValue: isGiven(isEnumType),
      StringValue: stop,
      FloatValue: stop,
      ListValue: stop,
      ObjectValue: stop,
    }),
  );
  return plain;
}

/** The fields of the operation as if each spread were the fragment itself; a valid document has no circle of them. */
function unfoldedFields(document: DocumentNode, operation: OperationDefinitionNode): number {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const counted = new Map<string, number>();
  const ofFragment = (name: string): number => {
    const known = counted.get(name);
    if (known !== undefined) return known;
    const fragment = fragments.get(name);
    const count = fragment ? ofSelections(fragment.selectionSet) : 0;
    counted.set(name, count);
    return count;
  };
  const ofSelections = ({ selections }: SelectionSetNode): number =>
    selections.reduce((sum, selection) => {
      switch (selection.kind) {
        case Kind.FIELD:
          return sum + 1 + (selection.selectionSet ? ofSelections(selection.selectionSet) : 0);
        case Kind.INLINE_FRAGMENT:
          return sum + ofSelections(selection.selectionSet);
        case Kind.FRAGMENT_SPREAD:
          return sum + ofFragment(selection.name.value);
        default:
          return selection satisfies never;
      }
    }, 0);
  return ofSelections(operation.selectionSet);
}
