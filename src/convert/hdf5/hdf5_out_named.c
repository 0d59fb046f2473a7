/* Committed data types, from a group's note: see hdf5_out.h. */
#include <stdlib.h>
#include <string.h>

#include "../../base/node_path.h"
#include "hdf5_out.h"

static const brc_json *noted_types(const brc_node_out *group)
{
    const brc_json *attrs = brc_json_member(group->doc, "attributes");
    return brc_json_member(brc_json_member(attrs, BRC_HDF5_GROUP_NOTE), "types");
}

/* A type that HDF5 does not make is passed over: what has it says of it what is needed. */
static int make_named(const brc_hdf5_out *out, const brc_json *note, const char *path,
                      const char *label, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    hid_t type = BRC_HDF5_NONE, plist;
    if (brc_json_kind(brc_json_member(note, "type")) == BRC_JSON_NULL)
        return BRC_OK;
    int rc = brc_hdf5_tree_make(&type, out->reg, brc_json_member(note, "type"), label, &why);
    if (rc < 0)
        return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
    plist = H5Pcreate(H5P_DATATYPE_CREATE);
    if (plist < 0 || H5Pset_obj_track_times(plist, 0) < 0 ||
        H5Tcommit2(out->id, path, type, out->link_names, plist, H5P_DEFAULT) < 0)
        rc = brc_hdf5_fail(err, BRC_EIO, "%s: a committed data type cannot be made", label);
    brc_hdf5_close(plist);
    brc_hdf5_close(type);
    return rc;
}

/* The object's path in the file; NULL in *out where a node of the export has this place, or the
 * name is none of HDF5's. */
static int named_path(char **out, const brc_hdf5_out *file, const brc_node_out *group,
                      const char *name, brc_error *err)
{
    *out = NULL;
    if (!*name || strchr(name, '/') || strcmp(name, ".") == 0)
        return BRC_OK;
    char *key;
    BRC_TRY(brc_convert_node_path(&key, file->convert, group->key, name, err));
    int is_node = brc_convert_node_at(file->convert, key + (*key == '/')) != NULL;
    free(key);
    if (is_node)
        return BRC_OK;
    return *group->inner ? brc_node_join(out, group->inner, name, err) : brc_dup(out, name, err);
}

int brc_hdf5_named_make(const brc_hdf5_out *out, const brc_node_out *group, brc_error *err)
{
    for (const brc_json *t = brc_json_first(noted_types(group)); t; t = brc_json_next(t)) {
        char *path;
        BRC_TRY(named_path(&path, out, group, brc_json_own_name(t), err));
        int rc = path ? make_named(out, t, path, group->path, err) : BRC_OK;
        free(path);
        BRC_TRY(rc);
    }
    return BRC_OK;
}

/* A group with what the note says as its attributes; doc is an object. */
static int named_doc(brc_json *doc, const brc_json *note, brc_error *err)
{
    static const char *const members[] = { "attributes", "at" };
    brc_json *values, *copy, *notes = brc_json_new_object();
    if (!notes)
        return brc_nomem(err);
    int rc = brc_json_clone(&values, brc_json_member(note, "values"), err);
    if (rc < 0) {
        brc_json_free(notes);
        return rc;
    }
    rc = brc_json_set(doc, "attributes", values, err); /* which owns it */
    for (size_t i = 0; i < 2 && rc == BRC_OK; i++) {
        const brc_json *member = brc_json_member(note, members[i]);
        if (member && (rc = brc_json_clone(&copy, member, err)) == BRC_OK)
            rc = brc_json_set(notes, members[i], copy, err);
    }
    if (rc == BRC_OK)
        return brc_json_set(values, BRC_HDF5_GROUP_NOTE, notes, err);
    brc_json_free(notes);
    return rc;
}

static int write_named_attrs(const brc_hdf5_out *out, const brc_json *note, const char *path,
                             const char *label, brc_error *err)
{
    brc_json *doc = brc_json_new_object();
    hid_t type = H5Topen2(out->id, path, H5P_DEFAULT);
    int rc = doc ? named_doc(doc, note, err) : brc_nomem(err);
    if (rc == BRC_OK && type >= 0) /* else it could not be made */
        rc = brc_hdf5_attrs_write(out, type, path, doc, NULL, NULL, label, err);
    brc_hdf5_close(type);
    brc_json_free(doc);
    return rc;
}

int brc_hdf5_named_attrs(const brc_hdf5_out *out, const brc_node_out *group, brc_error *err)
{
    for (const brc_json *t = brc_json_first(noted_types(group)); t; t = brc_json_next(t)) {
        char *path;
        if (brc_json_kind(brc_json_member(t, "values")) != BRC_JSON_OBJECT)
            continue;
        BRC_TRY(named_path(&path, out, group, brc_json_own_name(t), err));
        int rc = path ? write_named_attrs(out, t, path, group->path, err) : BRC_OK;
        free(path);
        BRC_TRY(rc);
    }
    return BRC_OK;
}
