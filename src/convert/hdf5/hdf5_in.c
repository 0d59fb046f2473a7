/*
 * Reads HDF5: the file's root group becomes a group, and the objects that are linked in it become
 * its children.
 *
 * Links are paths to objects. An object may have several links: hard links, and soft links by name.
 * Zarr has no links, so each path becomes a copy (equal chunks are stored once). A link to a group
 * that contains the link never ends, and a soft link may lead nowhere: the import refuses both. A
 * link to another file becomes a copy of the object that it leads to.
 */
#include "hdf5_in.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/node_path.h"
#include "hdf5_netcdf.h"


#define GROUP_DEPTH 100
/* The most copies of groups and datasets that were met before, and of objects below them: each link
 * to a group may double the number of objects, and each link to a dataset is a copy of all
 * elements. */
#define MOST_COPIES 10000

typedef struct link_list {
    char **names;
    H5L_type_t *types;
    size_t n, names_cap, types_cap;
    int rc;
    brc_error *err;
} link_list;

/* An object of any open file. */
typedef struct object_place {
    unsigned long file;
    haddr_t address;
} object_place;

typedef struct group_walk {
    const brc_hdf5_in *in;           /* the file of the current object, see go_there() */
    int depth;
    object_place above[GROUP_DEPTH]; /* the groups around the current object */
    void *met;                  /* objects met so far: a tree of tsearch() */
    int in_copy;                /* at or below a group that was met before       */
    size_t copies;
} group_walk;

static int import_object(group_walk *w, hid_t object, const char *path, const char *label,
                         brc_error *err);

/* ---- links -------------------------------- */

static herr_t take_link(hid_t group, const char *name, const H5L_info_t *info, void *ctx)
{
    link_list *list = ctx;
    int rc;
    (void)group;
    BRC_GO(brc_grow_array((void **)&list->names, &list->names_cap, list->n + 1,
                          sizeof(*list->names), list->err));
    BRC_GO(brc_grow_array((void **)&list->types, &list->types_cap, list->n + 1,
                          sizeof(*list->types), list->err));
    BRC_GO(brc_dup(&list->names[list->n], name, list->err));
    list->types[list->n++] = info->type;
done:
    list->rc = rc;
    return rc < 0 ? -1 : 0;
}

static void free_links(link_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->names[i]);
    free(list->names);
    free(list->types);
}

static int list_links(link_list *list, hid_t group, const char *label,
                      brc_error *err)
{
    list->err = err;
    herr_t walked = H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, take_link, list);
    if (list->rc < 0)
        return list->rc;
    if (walked < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: its members cannot be read", label);
    return BRC_OK;
}

/* ---- objects that are met again -------------------------------- */

static int by_place(const void *a, const void *b)
{
    const object_place *x = a, *y = b;
    return x->file != y->file ? (x->file > y->file) - (x->file < y->file)
                              : (x->address > y->address) - (x->address < y->address);
}

/* Notes that the walk has met an object. Sets *again to 1 if the walk met the object before. */
static int meet_object(group_walk *w, object_place place, int *again, brc_error *err)
{
    object_place *key;
    *again = tfind(&place, &w->met, by_place) != NULL;
    if (*again)
        return BRC_OK;
    BRC_TRY(brc_new((void **)&key, sizeof(*key), err));
    *key = place;
    if (tsearch(key, &w->met, by_place))
        return BRC_OK;
    free(key);
    return brc_nomem(err);
}

/* Adds the group to the groups around its members. */
static int enter_group(group_walk *w, object_place place, const char *label, brc_error *err)
{
    if (w->depth == GROUP_DEPTH)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL, "%s: groups are nested more than %d deep",
                               label, GROUP_DEPTH);
    for (int i = 0; i < w->depth; i++)
        if (by_place(&w->above[i], &place) == 0)
            return brc_part_refuse(
                err, BRC_PART_LINK, "remove this link, or leave it out with --exclude",
                "%s leads back to a group around it, so it has no end", label);
    w->above[w->depth++] = place;
    return BRC_OK;
}

/* ---- objects -------------------------------- */

static int check_link_type(H5L_type_t type, const char *label, brc_error *err)
{
    if (type != H5L_TYPE_HARD && type != H5L_TYPE_SOFT && type != H5L_TYPE_EXTERNAL)
        return brc_part_refuse(err, BRC_PART_LINK, NULL, "%s is a link of a kind that is not known",
                               label);
    return BRC_OK;
}

typedef struct hdf5_link {
    const char *path;  /* of the node of its group */
    const char *label; /* "x.h5: /a"            */
    const char *name;  /* of the link in its group */
    H5L_type_t type;
} hdf5_link;

/* Opens the object of a link. A dataset is opened again as a dataset, because otherwise the library
 * ignores properties that only dataset access lists have. */
static int open_link(const brc_hdf5_in *in, hid_t group, const hdf5_link *link, hid_t *out,
                     brc_error *err)
{
    brc_hdf5_forget_link(in->elsewhere);
    *out = H5Oopen(group, link->name, in->links);
    if (H5Iget_type(*out) == H5I_DATASET) {
        hid_t how = brc_hdf5_has_raw_files(*out) ? in->raw : in->links;
        brc_hdf5_close(*out);
        *out = H5Dopen2(group, link->name, how);
    }
    if (*out >= 0)
        return BRC_OK;
    return link->type == H5L_TYPE_HARD
               ? brc_hdf5_fail(err, BRC_EINVAL, "%s cannot be opened", link->label)
               : brc_hdf5_link_refuse(in->elsewhere, link->label, err);
}

/* Makes *there the import that goes on with this object, which may lie in another file. `label`
 * names the link to the object; *there is valid as long as the label. */
static int go_there(brc_hdf5_in *there, const brc_hdf5_in *in, hid_t object, const char *label,
                    brc_error *err)
{
    const brc_hdf5_other *other;
    H5O_info_t info;
    if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: it cannot be read", label);
    *there = info.fileno == in->number ? *in : *in->first;
    if (info.fileno == there->number)
        return BRC_OK;
    BRC_TRY(brc_hdf5_other_find(&other, in->elsewhere, object, info.fileno, in->links, label, err));
    const char *from = brc_hdf5_path_of_object(&other->paths, object);
    there->id = other->id;
    there->number = other->number;
    there->paths = other->paths;
    there->paths.from = from ? from : "?"; /* no path begins with this */
    there->paths.to = brc_convert_path(in->convert, label);
    if (there->netcdf)
        there->netcdf = &brc_hdf5_netcdf_elsewhere;
    return BRC_OK;
}

static const char *shown_name(const brc_hdf5_in *in, const char *link)
{
    return in->netcdf ? brc_hdf5_variable_name(link) : link;
}

static int follow_link(group_walk *w, hid_t group, const hdf5_link *link, brc_error *err)
{
    const brc_hdf5_in *in = w->in;
    brc_hdf5_in there;
    hid_t object = BRC_HDF5_NONE;
    char *node = NULL;
    int rc;

    BRC_GO(brc_convert_node_path(&node, in->convert, link->path, shown_name(in, link->name), err));
    BRC_GO(brc_convert_place_check(link->label, node, err));
    BRC_GO(check_link_type(link->type, link->label, err));
    BRC_GO(open_link(in, group, link, &object, err));
    BRC_GO(go_there(&there, in, object, link->label, err));
    if (brc_hdf5_is_dimension(&there, object))
        goto done;
    w->in = &there;
    rc = import_object(w, object, node, link->label, err);
    w->in = in;
done:
    brc_hdf5_close(object);
    free(node);
    return rc;
}

/* Imports the object of a link. `label` is that of the group, "x.h5: /a". */
static int import_link(group_walk *w, hid_t group, const char *path, const char *above,
                       const char *name, H5L_type_t type, brc_error *err)
{
    const brc_hdf5_in *in = w->in;
    char *label = NULL;
    int rc;

    BRC_GO(brc_node_join(&label, above, shown_name(in, name), err));
    if (brc_convert_is_excluded(in->convert, brc_convert_path(in->convert, label)))
        goto done;
    rc = follow_link(w, group, &(hdf5_link){ path, label, name, type }, err);
    rc = brc_convert_settle(in->convert, rc, brc_convert_path(in->convert, label), NULL, err);
done:
    free(label);
    return rc;
}

/* ---- groups -------------------------------- */

/* Describes a committed data type: its tree, or null if the type cannot be made again, and its
 * attributes. */
static int describe_named(brc_json **out, const brc_hdf5_in *in, hid_t type, const char *path,
                          const char *label, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    brc_hdf5_attrs attrs = { 0 };
    brc_hdf5_tree tree;
    brc_json *json = NULL, *note = brc_json_new_object();
    int rc =
        note ? brc_hdf5_tree_read(&tree, in->reg, type, BRC_HDF5_READING, label, &why) : BRC_ENOMEM;
    if (rc == BRC_OK) {
        rc = brc_hdf5_tree_json(&json, &tree, &why);
        brc_hdf5_tree_close(&tree);
    }
    if (rc == BRC_ENOMEM) {
        rc = brc_nomem(err);
        goto done;
    }
    BRC_GO(brc_json_set(note, "type", json ? json : brc_json_new_null(), err));
    json = NULL;
    BRC_GO(brc_hdf5_attrs_read(&attrs, in, type, 0, label, err));
    if (brc_json_count(attrs.values) > 0) {
        BRC_GO(brc_json_set(note, "values", attrs.values, err));
        attrs.values = NULL;
    }
    rc = brc_hdf5_note_attrs(note, &attrs, path, err);
done:
    brc_hdf5_attrs_free(&attrs);
    brc_json_free(json);
    if (rc < 0) {
        brc_json_free(note);
        note = NULL;
    }
    *out = note;
    return rc;
}

/* Describes the committed data types that are linked in the group. Sets *out to NULL if there are
 * none. */
static int note_named(brc_json **out, const brc_hdf5_in *in, hid_t group, const char *above,
                      brc_error *err)
{
    brc_json *types = NULL, *type = NULL;
    int rc = BRC_OK;
    size_t n;
    char *const *names = brc_hdf5_named_in(&in->paths, group, &n);
    for (size_t i = 0; i < n; i++) {
        char *label;
        hid_t object = brc_utf8_valid(names[i], strlen(names[i]))
                           ? H5Oopen(group, names[i], in->links)
                           : BRC_HDF5_NONE;
        if (object < 0)
            continue;
        rc = brc_node_join(&label, above, names[i], err);
        if (rc == BRC_OK) { /* the path is the label without the file's name */
            const char *path = label + strlen(in->file) + strlen(": ");
            rc = describe_named(&type, in, object, path, label, err);
            free(label);
        }
        brc_hdf5_close(object);
        BRC_GO(rc);
        if (!types && !(types = brc_json_new_object())) {
            brc_json_free(type);
            rc = brc_nomem(err);
            goto done;
        }
        BRC_GO(brc_json_set(types, names[i], type, err));
    }
done:
    if (rc < 0)
        brc_json_free(types);
    else
        *out = types;
    return rc;
}

static int make_hdf5_group(const brc_hdf5_in *in, hid_t group, const char *path, const char *label,
                           brc_error *err)
{
    brc_hdf5_attrs attrs;
    brc_json *types = NULL, *note = NULL;
    char *text = NULL;
    int rc;

    if (in->netcdf)
        return brc_hdf5_netcdf_group(in, group, path, label, err);
    BRC_TRY(brc_hdf5_attrs_read(&attrs, in, group, 0, label, err));
    BRC_GO(note_named(&types, in, group, label, err));
    note = brc_json_new_object();
    rc = note ? brc_hdf5_note_attrs(note, &attrs, path, err) : brc_nomem(err);
    BRC_GO(rc);
    if (types) {
        brc_json *given = types;
        types = NULL;
        BRC_GO(brc_json_set(note, "types", given, err));
    }
    brc_json *given = note;
    note = NULL;
    BRC_GO(brc_hdf5_note_group(&attrs, given, label, err));
    BRC_GO(brc_hdf5_attrs_text(&text, &attrs, err));
    BRC_GO(brc_convert_group(in->convert, path, text, err));
done:
    free(text);
    brc_json_free(types);
    brc_json_free(note);
    brc_hdf5_attrs_free(&attrs);
    return rc;
}

static int take_members(group_walk *w, hid_t group, const char *path, const char *label,
                        brc_error *err)
{
    link_list links = { 0 };
    int rc;
    BRC_GO(list_links(&links, group, label, err));
    for (size_t i = 0; i < links.n; i++)
        BRC_GO(import_link(w, group, path, label, links.names[i], links.types[i], err));
    rc = BRC_OK;
done:
    free_links(&links);
    return rc;
}

static int take_group(group_walk *w, hid_t group, object_place place, int again, const char *path,
                      const char *label, brc_error *err)
{
    int in_copy = w->in_copy;
    BRC_TRY(enter_group(w, place, label, err));
    w->in_copy |= again;
    int rc = brc_convert_phase(w->in->convert) == BRC_CONVERT_DOCS
                 ? make_hdf5_group(w->in, group, path, label, err)
                 : BRC_OK;
    if (rc == BRC_OK)
        rc = take_members(w, group, path, label, err);
    w->depth--;
    w->in_copy = in_copy;
    return rc;
}

static int count_copy(group_walk *w, const char *label, brc_error *err)
{
    if (++w->copies <= MOST_COPIES)
        return BRC_OK;
    return brc_fail(err, BRC_ELIMIT,
                    "%s: through its links the file has more than %d copies of groups "
                    "and datasets: remove links, or leave them out",
                    label, MOST_COPIES);
}

static int import_object(group_walk *w, hid_t object, const char *path, const char *label,
                         brc_error *err)
{
    H5O_info_t info;
    int again = 0;
    if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: it cannot be read", label);
    object_place place = { info.fileno, info.addr };
    BRC_TRY(meet_object(w, place, &again, err));
    if (again || w->in_copy)
        BRC_TRY(count_copy(w, label, err));
    switch (info.type) {
    case H5O_TYPE_GROUP:
        return take_group(w, object, place, again, path, label, err);
    case H5O_TYPE_DATASET:
        return brc_hdf5_dataset_import(w->in, object, path, label, err);
    case H5O_TYPE_NAMED_DATATYPE:
        return BRC_OK; /* the note of its group and of its users has it */
    default:
        return brc_part_refuse(err, BRC_PART_OBJECT, NULL, "%s is neither a group nor a dataset",
                               label);
    }
}

/* ---- files -------------------------------- */

int brc_hdf5_in_walk(void *state, brc_error *err)
{
    const brc_hdf5_in *in = state;
    group_walk w = { .in = in };
    char *label;
    BRC_TRY(brc_hdf5_label(&label, in->file, "/", err));
    hid_t root = H5Oopen(in->id, "/", in->links);
    int rc = root < 0 ? brc_hdf5_fail(err, BRC_EINVAL, "%s cannot be opened", label)
                      : import_object(&w, root, "/", label, err);
    brc_hdf5_close(root);
    tdestroy(w.met, free);
    free(label);
    return rc;
}

static void close_import(void *state)
{
    brc_hdf5_in *in = state;
    brc_hdf5_netcdf_free(in->netcdf);
    brc_hdf5_elsewhere_free(in->elsewhere);
    free(in->elsewhere);
    brc_hdf5_close(in->id);
    brc_hdf5_close(in->links);
    brc_hdf5_close(in->raw);
    brc_hdf5_paths_free(&in->paths);
    free(in);
}

int brc_hdf5_in_open(void **state, brc_convert *c, const char *file, brc_error *err)
{
    brc_hdf5_in *in;
    BRC_TRY(brc_new((void **)&in, sizeof(*in), err));
    *state = in;
    in->head.close = close_import;
    in->convert = c;
    in->reg = brc_convert_registry(c);
    in->file = file;
    in->id = in->links = in->raw = BRC_HDF5_NONE;
    in->first = in;
    BRC_TRY(brc_hdf5_start(err));
    BRC_TRY(brc_new((void **)&in->elsewhere, sizeof(*in->elsewhere), err));
    in->elsewhere->convert = c;
    BRC_TRY(brc_hdf5_file_open(&in->id, &in->links, &in->raw, in->elsewhere, file, err));
    H5O_info_t root;
    if (H5Oget_info2(in->id, &root, H5O_INFO_BASIC) >= 0)
        in->number = root.fileno;
    BRC_TRY(brc_hdf5_paths_read(&in->paths, in->id, in->links, file, err));
    return brc_hdf5_is_netcdf(in) ? brc_hdf5_netcdf_open(in, err) : BRC_OK;
}
