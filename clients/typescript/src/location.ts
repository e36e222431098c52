/** The file that this module is in, for `createRequire`. */
export const location: string = import.meta.url;
