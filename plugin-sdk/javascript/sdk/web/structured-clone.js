import clone from '@ungap/structured-clone';

export const structuredClone = (value) => clone(value);
