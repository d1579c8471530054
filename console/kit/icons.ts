import { html } from '../html.ts';

/** The paths of the icons, drawn as lines in a square of 20. */
const PATHS = {
  accounts: 'M3 17V8l7-5 7 5v9M3 17h14M8 17v-5h4v5',
  assets: 'M10 3c3.9 0 6 1.1 6 2.5S13.9 8 10 8 4 6.9 4 5.5 6.1 3 10 3ZM4 5.5v9C4 15.9 6.1 17 10 17s6-1.1 6-2.5v-9M4 10c0 1.4 2.1 2.5 6 2.5s6-1.1 6-2.5',
  audit: 'M5 3h7l3 3v11H5V3ZM8 8h4M8 11h4M8 14h2',
  check: 'm4 10.5 4 4 8-9',
  chevron: 'm6 8 4 4 4-4',
  clients: 'm7 6-4 4 4 4M13 6l4 4-4 4',
  close: 'm5 5 10 10M15 5 5 15',
  copy: 'M7 7h9v10H7V7ZM13 7V3H4v10h3',
  download: 'M10 3v9M6 8.5l4 4 4-4M4 16.5h12',
  empty: 'M3 11 5.5 4h9L17 11v5H3v-5ZM3 11h4l1 2h4l1-2h4',
  fuel: 'M4 17V4h7v13M3 17h9M4 9h7M11 10h2v4a1.5 1.5 0 0 0 3 0V7l-2.5-2.5',
  imports: 'M3 13v4h14v-4M10 13V3M6 7l4-4 4 4',
  menu: 'M3 5.5h14M3 10h14M3 14.5h14',
  networks: 'M10 3v4M10 13v4M3 10h4M13 10h4M7 7h6v6H7V7Z',
  overview: 'M3 3h6v7H3V3ZM11 3h6v4h-6V3ZM11 9h6v8h-6V9ZM3 12h6v5H3v-5Z',
  person: 'M10 10a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM3 17c0-3 3-4.5 7-4.5s7 1.5 7 4.5',
  rules: 'M3 6h7M14 6h3M3 14h3M10 14h7M12 4v4M8 12v4',
  search: 'M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12ZM13.5 13.5 17 17',
  supervisors: 'M10 3 4 5v5c0 4 2.5 6 6 7.5 3.5-1.5 6-3.5 6-7.5V5l-6-2ZM7.5 10l2 2 3-3.5',
  transactions: 'M3 7h13M13 4l3 3-3 3M17 13H4M7 10l-3 3 3 3',
  users: 'M7.5 10a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM2 16c0-2.5 2.5-3.5 5.5-3.5S13 13.5 13 16M13 4.5a3 3 0 0 1 0 5M15 12.5c2 .5 3 1.5 3 3.5',
} as const;

export type IconName = keyof typeof PATHS;

/** An icon, which says nothing by itself: a text stands beside it. */
export function Icon({ name }: { name: IconName }) {
  return html`<svg class="icon" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
}
