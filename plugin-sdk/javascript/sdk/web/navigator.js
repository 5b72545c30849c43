export const navigator = Object.freeze({ userAgent: 'Toolbay' });
