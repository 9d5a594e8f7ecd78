/* Walks records of Avro by a program that walker.py makes of their schema, so that a short record costs no Python. What it does not take (an array
 * in several blocks, bytes that are no record) it leaves to the readers in Python, which say what is wrong. Optional: nothing needs it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers on the wire are little-endian, and are copied as they lie"
#endif

/* As in walker.py. */
enum { NOTHING, LONG, BOOLEAN, SKIP, REAL, BYTES, UNION, ARRAY, MAP, RECORD };

enum { MOST_GATHERED = 4, MOST_ITEMS = 4096, MOST_PLACES = 1 << 24, LONGEST_SHIFT = 56 };

/* In the place of a position. */
enum { NOT_SO = -1, NO_MEMORY = -2 };

/* In the place of a row, as in rows.py. */
enum { ALL_FIT = -1, ABSENT = -2 };

typedef struct {
    int64_t *values;
    Py_ssize_t count, room;
} Numbers;

typedef struct {
    const uint8_t *data;
    Py_ssize_t end; /* nothing behind it is read */
    const int32_t *program;
    int64_t *columns; /* [columns][rows] */
    Py_ssize_t rows, row;
    Numbers *items; /* of arrays, all records' one behind the other */
} Walk;

static int append(Numbers *to, int64_t value) {
    if (to->count == to->room) {
        Py_ssize_t room = to->room ? 2 * to->room : 1024;
        int64_t *larger = PyMem_Realloc(to->values, (size_t) room * sizeof(int64_t));
        if (larger == NULL) {
            return NO_MEMORY;
        }
        to->values = larger;
        to->room = room;
    }
    to->values[to->count++] = value;
    return 0;
}

/* The zigzag of a number; the position behind it. */
static inline Py_ssize_t number(const Walk *w, Py_ssize_t p, uint64_t *n) {
    uint64_t value = 0;
    if (p < w->end && w->data[p] < 128) { /* most are */
        *n = w->data[p];
        return p + 1;
    }
    for (int shift = 0; shift <= LONGEST_SHIFT; shift += 7) {
        if (p >= w->end) {
            return NOT_SO;
        }
        uint8_t next = w->data[p++];
        value |= (uint64_t) (next & 127) << shift;
        if (next < 128) {
            *n = value;
            return p;
        }
    }
    return NOT_SO;
}

static inline void put(Walk *w, int32_t column, int64_t value) {
    if (column >= 0) {
        w->columns[column * w->rows + w->row] = value;
    }
}

/* The position behind what the program says at `at` and what begins at p; NOT_SO or NO_MEMORY. */
static Py_ssize_t walk(Walk *w, int32_t at, Py_ssize_t p) {
    const int32_t *op = w->program + at;
    uint64_t n;
    switch (op[0]) {
        case NOTHING:
            return p;
        case LONG: /* column, item: -1 for none */
            if ((p = number(w, p, &n)) < 0) {
                return p;
            }
            put(w, op[1], (int64_t) (n >> 1) ^ -(int64_t) (n & 1));
            if (op[2] >= 0 && append(&w->items[op[2]], (int64_t) (n >> 1) ^ -(int64_t) (n & 1)) < 0) {
                return NO_MEMORY;
            }
            return p;
        case BOOLEAN:
            return p < w->end && w->data[p] <= 1 ? p + 1 : NOT_SO;
        case SKIP: /* bytes */
            return op[1] <= w->end - p ? p + op[1] : NOT_SO;
        case REAL: { /* bytes, column */
            double value;
            if (op[1] > w->end - p) {
                return NOT_SO;
            }
            if (op[1] == 8) {
                memcpy(&value, w->data + p, 8);
            } else {
                float narrow;
                memcpy(&narrow, w->data + p, 4);
                value = narrow;
            }
            int64_t bits;
            memcpy(&bits, &value, 8);
            put(w, op[2], bits);
            return p + op[1];
        }
        case BYTES: /* bits of the zigzag that must be 0, columns of begin and end */
            if ((p = number(w, p, &n)) < 0) {
                return p;
            }
            if (n & (uint64_t) op[1] || n >> 1 > (uint64_t) (w->end - p)) {
                return NOT_SO;
            }
            put(w, op[2], p);
            p += (Py_ssize_t) (n >> 1);
            put(w, op[3], p);
            return p;
        case UNION: /* branches, the null one, column of there, where each is */
            if ((p = number(w, p, &n)) < 0) {
                return p;
            }
            if (n & 1 || n >> 1 >= (uint64_t) op[1]) {
                return NOT_SO;
            }
            if ((int32_t) (n >> 1) == op[2]) {
                return p;
            }
            put(w, op[3], 1);
            return walk(w, op[4 + (n >> 1)], p);
        case ARRAY: /* column of the count, the item */
        case MAP: { /* the same */
            if ((p = number(w, p, &n)) < 0) {
                return p;
            }
            if (n & 1 || n >> 1 > MOST_ITEMS) {
                return NOT_SO; /* a negative count is followed by the block's size */
            }
            put(w, op[1], (int64_t) (n >> 1));
            if (n == 0) {
                return p;
            }
            for (uint64_t count = n >> 1; count > 0; count--) {
                if (op[0] == MAP) {
                    uint64_t key;
                    if ((p = number(w, p, &key)) < 0) {
                        return p;
                    }
                    if (key & 1 || key >> 1 > (uint64_t) (w->end - p)) {
                        return NOT_SO;
                    }
                    p += (Py_ssize_t) (key >> 1);
                }
                if ((p = walk(w, op[2], p)) < 0) {
                    return p;
                }
            }
            return p < w->end && w->data[p] == 0 ? p + 1 : NOT_SO;
        }
        case RECORD: /* fields, where each is */
            for (int32_t i = 0; i < op[1]; i++) {
                const int32_t *field = w->program + op[2 + i];
                if (field[0] == UNION && p < w->end && w->data[p] == 2 * field[2]) { /* null */
                    p++;
                } else if ((p = walk(w, op[2 + i], p)) < 0) {
                    return p;
                }
            }
            return p;
        default:
            return NOT_SO;
    }
}

static PyObject *none(void) {
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *read_records(PyObject *self, PyObject *args) {
    Py_buffer data, begins, ends, program, columns;
    int count;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*i", &data, &begins, &ends, &program, &columns, &count)) {
        return NULL;
    }
    PyObject *found = NULL;
    Numbers *items = PyMem_Calloc((size_t) count + 1, sizeof(Numbers));
    Py_ssize_t rows = begins.len / 8, position = items == NULL ? NO_MEMORY : 0;
    Walk w = {data.buf, 0, program.buf, columns.buf, rows, 0, items};
    const int64_t *begin = begins.buf, *end = ends.buf;
    for (w.row = 0; w.row < rows && position >= 0; w.row++) {
        w.end = end[w.row];
        if (begin[w.row] < 0 || begin[w.row] > w.end || w.end > data.len) {
            position = NOT_SO;
        } else {
            position = walk(&w, 0, begin[w.row]);
            position = position < 0 || position == w.end ? position : NOT_SO;
        }
    }
    if (position == NO_MEMORY) {
        PyErr_NoMemory();
    } else if (position < 0) {
        found = none();
    } else if ((found = PyList_New(count)) != NULL) {
        for (int i = 0; i < count; i++) {
            PyObject *each = PyBytes_FromStringAndSize((const char *) items[i].values, items[i].count * 8);
            if (each == NULL) {
                Py_CLEAR(found);
                break;
            }
            PyList_SET_ITEM(found, i, each);
        }
    }
    for (int i = 0; items != NULL && i < count; i++) {
        PyMem_Free(items[i].values);
    }
    PyMem_Free(items);
    PyBuffer_Release(&data);
    PyBuffer_Release(&begins);
    PyBuffer_Release(&ends);
    PyBuffer_Release(&program);
    PyBuffer_Release(&columns);
    return found;
}

static PyObject *places(PyObject *self, PyObject *args) {
    Py_buffer data, program;
    Py_ssize_t p;
    if (!PyArg_ParseTuple(args, "y*ny*", &data, &p, &program)) {
        return NULL;
    }
    Numbers begins = {NULL, 0, 0};
    Walk w = {data.buf, data.len, program.buf, NULL, 0, 0, NULL};
    uint64_t n = 0;
    p = p < 0 ? NOT_SO : number(&w, p, &n);
    if (p >= 0 && (n & 1 || n == 0 || n >> 1 > MOST_PLACES)) {
        p = NOT_SO;
    }
    for (uint64_t count = n >> 1; count > 0 && p >= 0; count--) {
        p = append(&begins, p) < 0 ? NO_MEMORY : walk(&w, 0, p);
    }
    if (p >= 0 && (p >= w.end || w.data[p] != 0)) {
        p = NOT_SO;
    }
    if (p >= 0 && append(&begins, p) < 0) {
        p = NO_MEMORY;
    }
    PyObject *found = NULL;
    if (p == NO_MEMORY) {
        PyErr_NoMemory();
    } else if (p < 0) {
        found = none();
    } else {
        found = Py_BuildValue("y#n", (const char *) begins.values, begins.count * 8, p + 1);
    }
    PyMem_Free(begins.values);
    PyBuffer_Release(&data);
    PyBuffer_Release(&program);
    return found;
}

static PyObject *gather(PyObject *self, PyObject *args) {
    Py_buffer held[1 + 2 * MOST_GATHERED];
    Py_ssize_t count = PyTuple_GET_SIZE(args), taken = 0, size = 0;
    int fits = count >= 3 && count % 2 == 1 && count <= 1 + 2 * MOST_GATHERED;
    for (; fits && taken < count; taken++) {
        if (PyObject_GetBuffer(PyTuple_GET_ITEM(args, taken), &held[taken], PyBUF_SIMPLE) < 0) {
            fits = 0;
            break;
        }
        fits = taken < 2 || held[taken].len == held[1].len;
    }
    Py_ssize_t rows = fits ? held[1].len / 8 : 0;
    for (Py_ssize_t of = 1; of < count && fits; of += 2) {
        const int64_t *begin = held[of].buf, *end = held[of + 1].buf;
        for (Py_ssize_t i = 0; i < rows && fits; i++) { /* -1 where there is none, as both */
            fits = begin[i] <= end[i] && begin[i] >= -1 && (begin[i] >= 0 || end[i] == -1) && end[i] <= held[0].len;
            size += end[i] - begin[i];
        }
    }
    PyObject *out = fits ? PyByteArray_FromStringAndSize(NULL, size) : NULL;
    char *at = out == NULL ? NULL : PyByteArray_AS_STRING(out);
    for (Py_ssize_t i = 0; i < rows && out != NULL; i++) {
        for (Py_ssize_t of = 1; of < count; of += 2) {
            int64_t begin = ((const int64_t *) held[of].buf)[i], end = ((const int64_t *) held[of + 1].buf)[i];
            memcpy(at, (const char *) held[0].buf + (begin < 0 ? 0 : begin), (size_t) (end - begin));
            at += end - begin;
        }
    }
    for (Py_ssize_t i = 0; i < taken; i++) {
        PyBuffer_Release(&held[i]);
    }
    if (out == NULL && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "the ranges are not of the data, or of different lengths");
    }
    return out;
}

/* Whether every range of one array's bytes is that of another's, or of a single text's where the other has no ranges. */
static PyObject *same(PyObject *self, PyObject *args) {
    Py_buffer data, begins, ends, other, other_begins, other_ends;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*", &data, &begins, &ends, &other, &other_begins, &other_ends)) {
        return NULL;
    }
    const int64_t *begin = begins.buf, *end = ends.buf, *other_begin = other_begins.buf, *other_end = other_ends.buf;
    Py_ssize_t rows = begins.len / 8;
    int is_text = other_begins.len == 0;
    int alike = ends.len == begins.len && other_ends.len == other_begins.len && (is_text || other_begins.len == begins.len);
    for (Py_ssize_t i = 0; i < rows && alike; i++) {
        int64_t from = is_text ? 0 : other_begin[i], to = is_text ? other.len : other_end[i], size = end[i] - begin[i];
        alike = begin[i] >= 0 && from >= 0 && size >= 0 && size == to - from && end[i] <= data.len && to <= other.len
            && memcmp((const char *) data.buf + begin[i], (const char *) other.buf + from, (size_t) size) == 0;
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&begins);
    PyBuffer_Release(&ends);
    PyBuffer_Release(&other);
    PyBuffer_Release(&other_begins);
    PyBuffer_Release(&other_ends);
    return PyBool_FromLong(alike);
}

static PyObject *unlike(PyObject *self, PyObject *args) {
    Py_buffer begins, ends, lengths;
    int shift;
    if (!PyArg_ParseTuple(args, "y*y*y*i", &begins, &ends, &lengths, &shift)) {
        return NULL;
    }
    const int64_t *begin = begins.buf, *end = ends.buf, *length = lengths.buf;
    Py_ssize_t rows = begins.len / 8, found = ALL_FIT;
    if (ends.len != begins.len || lengths.len != begins.len) {
        found = rows; /* nobody's row */
    }
    for (Py_ssize_t i = rows - 1; i >= 0 && found < rows && found != ABSENT; i--) {
        if (begin[i] < 0) {
            found = ABSENT;
        } else if (end[i] - begin[i] != length[i] << shift) {
            found = i;
        }
    }
    PyBuffer_Release(&begins);
    PyBuffer_Release(&ends);
    PyBuffer_Release(&lengths);
    if (found == rows && rows > 0) {
        PyErr_SetString(PyExc_ValueError, "the columns are of different lengths");
        return NULL;
    }
    return PyLong_FromSsize_t(found);
}

static PyMethodDef METHODS[] = {
    {"read", read_records, METH_VARARGS, "(data, begins, ends, program, columns, items): bytes of the items, or None"},
    {"places", places, METH_VARARGS, "(data, position, program): bytes of where items begin and the position behind the array, or None"},
    {"gather", gather, METH_VARARGS, "(data, begins, ends, ...): the ranges one behind the other; of several, those of a row follow each other"},
    {"same", same, METH_VARARGS, "(data, begins, ends, other, begins, ends): whether the ranges are alike; without other ranges, each all of other"},
    {"unlike", unlike, METH_VARARGS, "(begins, ends, lengths, shift): the first row of another length, or what rows.py names"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_records", NULL, 0, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__records(void) {
    return PyModule_Create(&MODULE);
}
