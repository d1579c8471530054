/** Returns the GraphQL name of a REST member, such as `networkId` for `network_id`. */
export function camelName(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_match, letter: string) => letter.toUpperCase());
}
