/** Where weights lie that are too large for the cluster: objects by name and content hash, and files that hold them. */
package dev.millrace.weights.store;
