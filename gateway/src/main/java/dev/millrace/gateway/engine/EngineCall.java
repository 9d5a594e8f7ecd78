package dev.millrace.gateway.engine;

import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * A call that an answer is asked for with.
 *
 * @param path behind the engine's URL
 * @param body JSON
 */
record EngineCall(String path, ObjectNode body) {}
