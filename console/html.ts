import htm from 'htm';
import { h } from 'preact';

/** Makes elements out of a template that reads like HTML; values are text, attributes and children, never markup. */
export const html = htm.bind(h);
